"""Running networks: `start` one, push to it, read from it, attach queries, change it, look into it, stop it."""

from headway.running.attached import Attached as Attached
from headway.running.attached import Change as Change
from headway.running.handle import Running as Running
from headway.running.handle import start as start
