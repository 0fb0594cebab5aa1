-- What h5py finds in hdf5/utf8_names.h5; made by spec/golden/hdf5.py.
return {
  tensors = {
    ["große"] = { dtype = "float32", shape = { 20 }, first = { 0, 1, 2 }, sum = 190 },
    ["großes/пример/名前"] = { dtype = "float32", shape = { 20, 20 }, first = { 0, 1, 2 }, sum = 79800 } },
  notes = {
     },
  groups = {
    "großes",
    "großes/пример" } }
