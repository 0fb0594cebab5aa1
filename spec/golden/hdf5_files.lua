-- hdf5_files.lua: writes the files that spec/golden/hdf5.py opens with h5py, zipfile and Keras, and hdf5_spec.lua compares with stored
-- ones: FOLDER/written.h5, FOLDER/written.zip, and FOLDER/copied.weights.h5, which is what Keras wrote (spec/golden/hdf5/keras.weights.h5)
-- read and written again.
local flow = require "flow"
local native = require "flow.ffi"
local tensor_file = require "flow.saving.tensor_file"

local C, check = native.C, native.check
local files = {}

files.dtypes = { "float32", "float16", "bfloat16", "float64", "int8", "uint8", "int32", "int64", "bool" }

local function content(writer)
  for _, dtype in ipairs(files.dtypes) do
    writer:add("dtypes/" .. dtype, flow.cast(flow.tensor { { 0, 1, 2 }, { 3, 4, 100 } }, dtype))
  end
  writer:add("scalars/" .. "number", flow.tensor(1.5))
  writer:add("scalars/iteration", flow.cast(flow.tensor(7), "int64"))
  writer:add("empty", flow.zeros { 0, 3 })
  writer:add("transposed", flow.transpose(flow.tensor { { 1, 2, 3 }, { 4, 5, 6 } }))
  writer:add("großes/пример/名前", flow.tensor { 1, 2 })
  writer:group("nothing here")
  for i = 0, 299 do
    local path = ("many/layer_%d/vars"):format(i)
    writer:group(path)
    writer:note(path, "name", "layer number " .. i)
    if i % 50 == 0 then writer:add(path .. "/0", flow.tensor { i, i + 0.5 }) end
  end
  writer:note("", "name", "ein Modell: größer")
  writer:note("nothing here", "empty", "")
  writer:note("empty", "long", ("0123456789"):rep(7000))
end

-- What is in one file into another: tensors, notes and groups.
function files.copy(from, to)
  local file, writer = tensor_file.open(from), tensor_file.writer()
  for _, path in ipairs(file:groups()) do writer:group(path) end
  for i = 1, file.count do writer:add(file:name_of(i), file:read(i)) end
  for _, note in ipairs(file:notes()) do writer:note(note.path, note.key, file:note(note.path, note.key)) end
  file:close()
  writer:save(to, "hdf5")
end

function files.write(folder, root)
  local writer = tensor_file.writer()
  content(writer)
  writer:save(folder .. "/written.h5", "hdf5")

  local out = native.out("flow_archive_writer")
  check(C.flow_archive_writer_new(folder .. "/written.zip", out))
  local archive = native.own(out, C.flow_archive_writer_release)
  local text = '{"a": "ä"}'
  check(C.flow_archive_writer_add_text(archive, "metadata.json", text, #text))
  check(C.flow_archive_writer_add_tensors(archive, "model.weights.h5", writer._handle, "hdf5"))
  check(C.flow_archive_writer_add_text(archive, "assets/ü", "", 0))
  check(C.flow_archive_writer_commit(archive))
  native.close(archive, C.flow_archive_writer_release)
  files.copy(root .. "spec/golden/hdf5/keras.weights.h5", folder .. "/copied.weights.h5")
end

return files
