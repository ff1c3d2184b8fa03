"""Pure. WHICH of several sides goes on, and with what: uniform, primary, and brought up to date, over an agreed order.

Corosync orders messages and tells who is in the group, but every side of a partition goes on by itself, and a member
may be given a message that nobody else will ever see. This package makes of it what a group asks for
(`echoic.groups.engine`), in layers that know nothing of Corosync:

    member         Agreement: one member of the group; the protocol, in its docstring
    primary        which side of a partition is the primary one, and whose order it goes on with
    uniform        what every member holds, and so may be delivered
    order          what was ordered: kept for those who missed it
    catching_up    bringing a member up to date: what was kept, or the state of another member
    messages       what members tell each other
    standing       how a member stands
"""

from echoic.groups.agreement.member import Agreement
from echoic.groups.agreement.messages import HEADER_BYTES, Outgoing, Place
from echoic.groups.agreement.standing import AgreementStatistics

__all__ = ["HEADER_BYTES", "Agreement", "AgreementStatistics", "Outgoing", "Place"]
