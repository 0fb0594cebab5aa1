-- many_parts.lua: writes files of many parts, and reads them: flowlua many_parts.lua write KIND PARTS PATH, read KIND PATH.
-- Kinds: npz, an archive of arrays; model, a chain of layers; backwards, the same in the opposite order; zigzag, in an order for which
-- walks over the list, forwards and backwards, make a few calls each.
local flow = require "flow"
local native = require "flow.ffi"
local json = require "flow.json"
local tensor_file = require "flow.saving.tensor_file"

local C = native.C

-- The layers of a chain in the file's order: position i of `order` is the number of a layer in the chain.
local function config_of(order, last)
  local layers = { { module = "keras.layers", class_name = "InputLayer", name = "in", inbound_nodes = json.list(),
                     config = { batch_shape = json.list { json.null, 4 }, dtype = "float32", name = "in" } } }
  for _, number in ipairs(order) do
    local before = number == 1 and "in" or "a" .. number - 1
    local tensor = { class_name = "__keras_tensor__",
                     config = { shape = json.list { json.null, 4 }, dtype = "float32", keras_history = json.list { before, 0, 0 } } }
    layers[#layers + 1] = { module = "keras.layers", class_name = "Activation", name = "a" .. number,
                            config = { name = "a" .. number, trainable = true, dtype = "float32", activation = "relu" },
                            inbound_nodes = json.list { { args = json.list { tensor }, kwargs = {} } } }
  end
  return { module = "keras.src.models.functional", class_name = "Functional", registered_name = "Functional", config = {
    name = "m", trainable = true, layers = layers, input_layers = json.list { json.list { "in", 0, 0 } },
    output_layers = json.list { json.list { "a" .. last, 0, 0 } } } }
end

local function order_of(kind, parts)
  local order = {}
  for i = 1, parts do
    if kind == "zigzag" then order[i % 2 == 1 and (i + 1) / 2 or parts + 1 - i / 2] = i      -- 1 3 5 ... 6 4 2
    else order[kind == "backwards" and parts + 1 - i or i] = i end
  end
  return order
end

local function add_text(archive, name, text) native.check(C.flow_archive_writer_add_text(archive, name, text, #text)) end

local function write_model(kind, parts, path)
  local out, writer = native.out "flow_archive_writer", tensor_file.writer()
  native.check(C.flow_archive_writer_new(path, out))
  local archive = native.own(out, C.flow_archive_writer_release)
  add_text(archive, "metadata.json", '{"keras_version": "3.0.0"}')
  add_text(archive, "config.json", json.encode(config_of(order_of(kind, parts), parts)))
  native.check(C.flow_archive_writer_add_tensors(archive, "model.weights.h5", writer._handle, "hdf5"))
  native.check(C.flow_archive_writer_commit(archive))
  native.close(archive, C.flow_archive_writer_release)
end

local what, kind = arg[1], arg[2]
if what == "write" and kind == "npz" then
  local arrays = {}
  for i = 1, tonumber(arg[3]) do arrays["a" .. i] = flow.zeros { 1 } end
  flow.save_npz(arg[4], arrays)
elseif what == "write" then
  write_model(kind, tonumber(arg[3]), arg[4])
elseif kind == "npz" then
  local count = 0
  for _ in pairs(flow.load_npz(arg[3])) do count = count + 1 end
  print("read", count)
else
  local out = native.out "flow_model"
  local status = C.flow_model_load(native.context, arg[3], out)
  print("read", status == 0 and "all" or native.string(C.flow_last_error()))
  C.flow_model_release(out[0])
end
