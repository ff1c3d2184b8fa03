"""The data source `echoic`: journals as tables and streams of them, and channels that take what a query makes.

    spark.read.format("echoic").options(journal="journals", channel="trades").load()
    spark.readStream.format("echoic").options(journal="journals", channel="trades").load()
    frame.write.format("echoic").mode("append").options(channel="echoic://host:7400/alerts").save()
    frame.writeStream.format("echoic").options(channel="alerts", names="host:7400").start()

It is a Python data source, so Spark pickles it and makes readers and writers of it in processes of its own, by its own
means. It holds nothing but the options.
"""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from echoic.spark.batch_reader import BatchReader, PushingBatchReader
from echoic.spark.options import SourceOptions
from echoic.spark.reading import reading_of
from echoic.spark.stream_reader import StreamReader

__all__ = ["EchoicSource"]


class EchoicSource(DataSource):
    """What Spark knows as `format("echoic")`."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "echoic"

    def schema(self) -> StructType:
        """Return the columns that there are to read.

        Raises:
            PipelineError: An option is wrong, or nothing was recorded yet.
            EchoicError: The journal cannot be opened, or code is wrong.
        """
        return reading_of(SourceOptions.of(self.options)).struct

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads all that there is.

        Raises:
            PipelineError: An option is wrong, or asks for what is not there.
            EchoicError: The journal cannot be opened, or code is wrong.
        """
        options = SourceOptions.of(self.options)
        return (PushingBatchReader if options.pushdown else BatchReader)(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return what reads what comes.

        Raises:
            PipelineError: An option is wrong, or asks for what is not there.
            EchoicError: The journal cannot be opened, or code is wrong.
        """
        return StreamReader(SourceOptions.of(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return what submits rows as events.

        Raises:
            PipelineError: An option is wrong, or events cannot be overwritten.
            EchoicError: The channel cannot be reached, or takes other events.
        """
        from echoic.spark.writing import EchoicWriter

        return EchoicWriter(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802 - Spark's name
        """Return what submits the rows of each batch as events, once.

        Raises:
            PipelineError: An option is wrong, or events cannot be overwritten.
            EchoicError: The channel cannot be reached, or takes other events.
        """
        from echoic.spark.writing import EchoicStreamWriter

        return EchoicStreamWriter(self.options, schema, overwrite)
