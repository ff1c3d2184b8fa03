"""`echoic completion`: a script with which a shell completes verbs, options, and what lives.

Verbs and options are written down by cyclopts, for each shell. Around that stand a few lines of ours, which ask
`echoic --complete-live` first (`echoic.cli.completing`) and fall back to what is written down.
"""

import os
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from cyclopts import Parameter

from echoic.cli.screen import say
from echoic.cli.where import Flag
from echoic.errors import LocalError

__all__ = ["completion"]

Shell: TypeAlias = Literal["bash", "zsh", "fish"]

BASH: Final = """
_echoic_live() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do COMPREPLY+=("$line"); done < <(
    "${COMP_WORDS[0]}" --complete-live "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null
  )
  [[ ${#COMPREPLY[@]} -gt 0 ]] || return 1
  [[ "${COMPREPLY[0]}" != *= ]] || compopt -o nospace
}

_echoic_first() {
  if [[ "${COMP_WORDS[COMP_CWORD]}" != -* && $COMP_CWORD -ge 2 ]] && _echoic_live; then return; fi
  _echoic "$@"
}

complete -F _echoic_first echoic
"""
ZSH: Final = """
_echoic_live() {
  local -a found
  [[ "${words[CURRENT]}" != -* && $CURRENT -gt 2 ]] || return 1
  found=("${(@f)$(${words[1]} --complete-live "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n "${found[1]}" ]] || return 1
  if [[ "${found[1]}" == *= ]]; then compadd -S '' -- "${found[@]}"; else compadd -- "${found[@]}"; fi
}

_echoic() {
  _echoic_live || _cyclopts_echoic "$@"
}

if [[ "${funcstack[1]}" == _echoic ]]; then _echoic "$@"; else compdef _echoic echoic; fi
"""
FISH: Final = """
function __fish_echoic_live
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    test (count $words) -gt 0; and $program --complete-live $words (commandline -ct | string collect) 2>/dev/null
end

complete -c echoic -a '(__fish_echoic_live)'
"""
LIVE: Final[dict[Shell, str]] = {"bash": BASH, "zsh": ZSH, "fish": FISH}
HINTS: Final[dict[Shell, str]] = {
    "bash": "it is found by itself where bash-completion is installed; else add to ~/.bashrc: source {path}",
    "zsh": "add to ~/.zshrc, before compinit: fpath=({folder} $fpath)",
    "fish": "it is found by itself",
}


def completion(
    shell: Annotated[Shell | None, Parameter(show_default=False)] = None, /, *, install: Flag = False
) -> None:
    """Print a script with which a shell completes verbs, options, and the names of what lives.

    Channels, parameters of derived channels, contexts, groups and buses are asked for when Tab is pressed.
    `echoic --install-completion` is the same as `echoic completion --install`.

    Try:
        source <(echoic completion bash)
        echoic completion fish --install

    Args:
        shell: For which. [default: the one in $SHELL]
        install: Put the script where the shell looks for it.
    """
    chosen = shell or _own_shell()
    script = _script(chosen)
    if not install:
        print(script, end="")
        return
    path = _place(chosen)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script, "utf-8")
    except OSError as error:
        raise LocalError(f"cannot write {path}: {error}") from error
    say(f"{path} is written; {HINTS[chosen].format(path=path, folder=path.parent)}")


def _own_shell() -> Shell:
    name = Path(os.environ.get("SHELL", "")).name
    if name not in LIVE:
        raise LocalError(f"expected a shell, one of {', '.join(LIVE)}; $SHELL is `{name}`")
    return name


def _script(shell: Shell) -> str:
    from echoic.cli.app import app, load_all

    load_all()
    return app.generate_completion(prog_name="echoic", shell=shell) + LIVE[shell]


def _place(shell: Shell) -> Path:
    """Return where a shell looks for scripts of its user."""
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    match shell:
        case "bash":
            return data / "bash-completion" / "completions" / "echoic"
        case "zsh":
            return data / "zsh" / "site-functions" / "_echoic"
        case "fish":
            return settings / "fish" / "completions" / "echoic.fish"
