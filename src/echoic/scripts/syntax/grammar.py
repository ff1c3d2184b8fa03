"""The grammar of T-scripts, for lark's LALR(1) parser; it has no conflicts.

Processes bind, tightest first:

    P >> Q   left      P * Q   left      P . Q   right     P + Q   left
    P <+ Q   left      P +> Q  right     P || Q  left

Rules of operators take all their operands at once, so that a sequence of ten thousand atoms is one reduction and not
ten thousand nested ones. Types are written like terms without variables. The words of tools' features are names
inside terms.

The grammar is a string and not a file beside the module: it is there wherever the module is, in a zip too.
"""

from typing import Final

from echoic.scripts.syntax.tokens import KINDS

__all__ = ["GRAMMAR"]

TERMINALS: Final = " ".join(dict.fromkeys([*KINDS.values(), "IDENT", "NAME", "INT", "REAL", "STRING"]))

GRAMMAR: Final = rf"""
%declare {TERMINALS}

start: definition*

?definition: PROCESS NAME formals? IS merge                      -> process_definition
           | TOOL word formals? IS LBRACE feature* RBRACE        -> tool_definition
           | TOOLBUS LPAR call (COMMA call)* RPAR                -> configuration
           | NOTE CHANNEL STRING AS type                         -> channel_note

formals: LPAR (formal (COMMA formal)*)? RPAR
formal: NAME COLON type QUESTION?
feature: (FEATURE | CHANNEL) EQUAL STRING SEMICOLON?

?merge: right_biased (MERGE right_biased)*
?right_biased: left_biased (RIGHT left_biased)*
?left_biased: choice (LEFT choice)*
?choice: sequence (PLUS sequence)*
?sequence: iteration (DOT iteration)*
?iteration: disrupt (STAR disrupt)*
?disrupt: primary (DISRUPT primary)*

?primary: LPAR merge RPAR                                        -> group
        | IF term THEN merge (ELSE merge)? FI                    -> conditional
        | LET declaration (COMMA declaration)* IN merge ENDLET   -> let
        | call
        | PLAIN timing*                                          -> plain
        | ATOM LPAR terms? RPAR timing*                          -> atom
        | NAME ASSIGN term timing*                               -> assign
        | CREATE LPAR call COMMA term RPAR timing*               -> create

declaration: NAME COLON type
call: NAME (LPAR terms? RPAR)?
timing: TIMING LPAR terms? RPAR

terms: term (COMMA term)*
?term: INT                                                       -> integer
     | REAL                                                      -> real
     | STRING                                                    -> string
     | CONSTANT                                                  -> constant
     | NAME QUESTION?                                            -> variable
     | word (LPAR terms? RPAR)?                                  -> application
     | LBRACKET terms? RBRACKET                                  -> list_of
     | LESS type GREATER                                         -> placeholder_of

types: type (COMMA type)*
?type: INT                                                       -> integer_type
     | REAL                                                      -> real_type
     | STRING                                                    -> string_type
     | CONSTANT                                                  -> constant_type
     | word (LPAR types? RPAR)?                                  -> application_type
     | LBRACKET types? RBRACKET                                  -> list_type
     | LESS type GREATER                                         -> placeholder_type

?word: IDENT | FEATURE | CHANNEL | NOTE | AS
"""
