"""All experiments: importing this registers them, paper by paper and in the order of their figures."""

# isort: off
import headway_experiments.scheduling.figure3
import headway_experiments.scheduling.figure5
import headway_experiments.scheduling.spark_figure5
import headway_experiments.scheduling.figure6
import headway_experiments.scheduling.figure6_local
import headway_experiments.scheduling.figure7
import headway_experiments.scheduling.figure8
import headway_experiments.scheduling.figure9
import headway_experiments.scheduling.spark_figure9
import headway_experiments.scheduling.figure11
import headway_experiments.scheduling.spark_figure11
import headway_experiments.scheduling.buckets
import headway_experiments.aurora.figure7
import headway_experiments.aurora.boxes
import headway_experiments.prb.cost_skew
import headway_experiments.prb.selectivity_skew
import headway_experiments.prb.depth
import headway_experiments.prb.number
import headway_experiments.prb.magnitude
import headway_experiments.prb.overhead
import headway_experiments.mavstream.single_measure
import headway_experiments.mavstream.different_priority
import headway_experiments.mavstream.same_priority
import headway_experiments.amos.tables
import headway_experiments.amos.figure2
import headway_experiments.amos.figure5
import headway_experiments.amos.weighted  # noqa: F401
