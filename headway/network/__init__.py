"""Networks as users describe them: schemas, QoS graphs, and what a file may name. Frozen data, no behaviour."""

from headway.network.keep import Keep as Keep
from headway.network.keep import Roll as Roll
from headway.network.network import Box as Box
from headway.network.network import FrozenMap as FrozenMap
from headway.network.network import Input as Input
from headway.network.network import Network as Network
from headway.network.network import Output as Output
from headway.network.network import Point as Point
from headway.network.network import Source as Source
from headway.network.network import Streamed as Streamed
from headway.network.network import Table as Table
from headway.network.network import View as View
from headway.network.network import arc_name as arc_name
from headway.network.network import check_name as check_name
from headway.network.network import freeze as freeze
from headway.network.network import is_object as is_object
from headway.network.network import stream_name as stream_name
from headway.network.network import thaw as thaw
