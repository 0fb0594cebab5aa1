-- operation_files.lua: luajit operation_files.lua FILE FOLDER: reads FILE.keras, writes it again as FOLDER/again.keras, and writes a model
-- of own ops of flow, FOLDER/own.keras, with what it predicts in FOLDER/own.npz. Without arguments it returns `own`.
local flow = require "flow"

-- The outputs of flow's own ops on the inputs of operation_files.py: all of them have a class in Keras.
local function own(x, y, image, query)
  local ops, kernel = flow.keras.ops, flow.random.normal({ 3, 3, 3, 4 }, { seed = 1 })
  local ones = flow.ones { 4 }
  return {
    ops.einsum("bhwc,bhwd->bcd", image, image), ops.tensordot(x, flow.ones { 4, 3 }, 1), ops.dot(x, flow.ones { 4, 3 }),
    ops.conv(image, kernel, { strides = 2, padding = "same" }), ops.depthwise_conv(image, flow.ones { 3, 3, 3, 2 }),
    ops.max_pool(image, { 3, 2 }, { strides = { 1, 2 }, padding = "same" }), ops.average_pool(image, 2),
    ops.dot_product_attention(query, query * 2, query + 1), ops.layer_normalization(x, ones, ones), ops.rms_normalization(x),
    ops.rot90(image, 1, { 2, 3 }), ops.quantile(x, 0.3, 2), ops.percentile(x, { 30, 60 }, 2, { method = "lower" }),
    ops.isclose(x, y, { atol = 0.5 }), ops.average(x, 2), ops.cross(x[{ {}, { 1, 3 } }], y[{ {}, { 1, 3 } }]), ops.inner(x, y),
    ops.nancumsum(x, 2), ops.scatter_update(x, { { 1, 2 }, { 3, 4 } }, flow.tensor { 5, 6 }), ops.slice(x, { 1, 2 }, { 4, 2 }),
    ops.kron(x, y), ops.saturate_cast(x * 300, "uint8"), ops.array_split(x, 3, 2)[2], ops.trapezoid(x),
    ops.vstack { x, y }, ops.correlate(x[1], y[1], "full"),
  }
end

local file, folder = ...
if type(folder) ~= "string" then return own end

local names = { "x", "y", "image", "query", "ids", "rows" }
local values, inputs = {}, {}
for i, name in ipairs(names) do
  values[i] = flow.load_npz(file .. ".npz", name)
  local shape = values[i].shape
  inputs[i] = flow.Input({ unpack(shape, 2) }, { dtype = values[i].dtype, batch_size = shape[1], name = name })
end
flow.load_model(file .. ".keras"):save(folder .. "/again.keras")
local model = flow.Model { inputs = inputs, outputs = own(unpack(inputs)) }
assert(not model:to_json():find("flowlua.ops", 1, true), "an op of flowlua's own in the file")
model:save(folder .. "/own.keras")
local arrays = {}
for i, value in ipairs(model(values)) do arrays[("out %03d"):format(i)] = value end
flow.save_npz(folder .. "/own.npz", arrays)
