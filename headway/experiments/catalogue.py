"""All experiments: importing this registers them, paper by paper and in the order of their figures."""

# isort: off
import headway.experiments.scheduling.figure3
import headway.experiments.scheduling.figure5
import headway.experiments.scheduling.spark_figure5
import headway.experiments.scheduling.figure6
import headway.experiments.scheduling.figure6_local
import headway.experiments.scheduling.figure7
import headway.experiments.scheduling.figure8
import headway.experiments.scheduling.figure9
import headway.experiments.scheduling.spark_figure9
import headway.experiments.scheduling.figure11
import headway.experiments.scheduling.spark_figure11
import headway.experiments.scheduling.buckets
import headway.experiments.aurora.figure7
import headway.experiments.aurora.boxes
import headway.experiments.prb.cost_skew
import headway.experiments.prb.selectivity_skew
import headway.experiments.prb.depth
import headway.experiments.prb.number
import headway.experiments.prb.magnitude
import headway.experiments.prb.overhead
import headway.experiments.mavstream.single_measure
import headway.experiments.mavstream.different_priority
import headway.experiments.mavstream.same_priority
import headway.experiments.amos.tables
import headway.experiments.amos.figure2
import headway.experiments.amos.figure5
import headway.experiments.amos.weighted  # noqa: F401
