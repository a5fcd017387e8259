"""What a practitioner would try: tigra's folder recipe and its peers on small sets of pictures, upright and turned."""
