"""Edge: touches Spark, Java and files. How do channels become tables, and results channels?"""

__all__: list[str] = []
