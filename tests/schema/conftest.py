from hypothesis import settings

# The first example pays for imports and busy machines; what these tests judge is never the time.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
