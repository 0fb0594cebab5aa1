-- model:export: the structure of the ONNX models and the folder for servers. That ONNX Runtime computes the same is tested in
-- spec/golden/onnx_spec.lua.
local support = require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"
local json = require "flow.json"
local layers = flow.layers
local C = native.C

local function message_of(f, ...)
  local values = { ... }
  return support.message_of(function() f(unpack(values)) end)
end

---- reading ONNX ---------------------------------------------------------------------------------------------------------------

local function varint(text, at)
  local value, factor = 0, 1
  while true do
    local byte = text:byte(at)
    at = at + 1
    value, factor = value + byte % 128 * factor, factor * 128
    if byte < 128 then return value, at end
  end
end

-- The fields of a message: { number = { values } }; numbers of type varint, texts of the others.
local function fields_of(text)
  local fields, at = setmetatable({}, { __index = function() return {} end }), 1
  while at <= #text do
    local key, value
    key, at = varint(text, at)
    local number, kind = math.floor(key / 8), key % 8
    if kind == 0 then
      value, at = varint(text, at)
    else
      local length = kind == 5 and 4 or kind == 1 and 8
      if not length then length, at = varint(text, at) end
      value, at = text:sub(at, at + length - 1), at + length
      assert.are.equal(length, #value)
    end
    fields[number] = rawget(fields, number) or {}
    table.insert(fields[number], value)
  end
  return fields
end

local function value_of(text)
  local value = fields_of(text)
  local tensor = fields_of(fields_of(value[2][1])[1][1])
  local shape = {}
  for i, dim in ipairs(fields_of(tensor[2][1] or "")[1]) do
    local fields = fields_of(dim)
    shape[i] = fields[1][1] or fields[2][1]
  end
  return { name = value[1][1], dtype = tensor[1][1], shape = shape }
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local model = fields_of(file:read("*a"))
  file:close()
  local graph = fields_of(model[7][1])
  local onnx = { ir = model[1][1], opset = fields_of(model[8][1])[2][1], nodes = {}, counts = {}, weights = {}, inputs = {}, outputs = {} }
  for i, text in ipairs(graph[1]) do
    local node = fields_of(text)
    onnx.nodes[i] = { type = node[4][1], inputs = node[1], output = node[2][1], more = { unpack(node[2], 2) } }
    onnx.counts[node[4][1]] = (onnx.counts[node[4][1]] or 0) + 1
  end
  for _, text in ipairs(graph[5]) do
    local tensor = fields_of(text)
    onnx.weights[tensor[8][1]] = { shape = tensor[1], dtype = tensor[2][1], data = tensor[9][1] }
  end
  for i, text in ipairs(graph[11]) do onnx.inputs[i] = value_of(text) end
  for i, text in ipairs(graph[12]) do onnx.outputs[i] = value_of(text) end
  return onnx
end

local folder
local function exported(model, options)
  local path = folder .. "/m.onnx"
  model:export(path, options)
  local onnx = read(path)
  -- Every name is made once, before it is used.
  local known = {}
  local function make(name)
    assert.is_nil(known[name], name)
    known[name] = true
  end
  for _, input in ipairs(onnx.inputs) do make(input.name) end
  for name in pairs(onnx.weights) do make(name) end
  for _, node in ipairs(onnx.nodes) do
    for _, input in ipairs(node.inputs) do assert.is_true(input == "" or known[input], input) end
    make(node.output)
    for _, name in ipairs(node.more) do if name ~= "" then make(name) end end
  end
  for _, output in ipairs(onnx.outputs) do assert.is_true(known[output.name]) end
  return onnx
end

local function types_of(onnx)
  local types = {}
  for i, node in ipairs(onnx.nodes) do types[i] = node.type end
  return table.concat(types, " ")
end

describe("model:export", function()
  before_each(function()
    flow.clear_session()
    folder = support.folder()
  end)
  after_each(function() flow.io.rmtree(folder) end)

  it("writes a CNN with one transposition at the start and one where it is flattened", function()
    local onnx = exported(flow.Sequential { layers.Input { 12, 12, 3 }, layers.Rescaling(1 / 255),
      layers.Conv2D(4, 3, { activation = "relu" }), layers.MaxPooling2D(), layers.Conv2D(8, 3, { activation = "relu" }), layers.Flatten(),
      layers.Dense(5, { activation = "softmax" }) })
    assert.are.equal("Mul Transpose Conv Add Relu MaxPool Conv Add Relu Transpose Reshape MatMul Add Softmax Identity", types_of(onnx))
    assert.are.same({ 8, 18 }, { onnx.ir, onnx.opset })
    assert.are.same({ { name = "input_layer", dtype = 1, shape = { "batch", 12, 12, 3 } } }, onnx.inputs)
    assert.are.same({ { name = "dense", dtype = 1, shape = { "batch", 5 } } }, onnx.outputs)
    assert.are.same({ 72, 5 }, onnx.weights["dense/kernel"].shape)
    assert.are.same({ 1, 4, 1, 1 }, onnx.weights["conv2d/bias"].shape)
  end)

  it("stays channels first through branches, pooling and joins", function()
    local input = flow.Input { 16, 16, 3 }
    local x = layers.Conv2D(4, 3, { padding = "same" })(input)
    local y = layers.BatchNormalization()(layers.Conv2D(4, 3, { padding = "same" })(layers.ReLU()(x)))
    local joined = layers.Concatenate()({ layers.Add()({ x, y }), layers.AveragePooling2D(2, { strides = 1, padding = "same" })(y) })
    local model = flow.Model { inputs = input, outputs = layers.Dense(2)(layers.GlobalAveragePooling2D()(joined)) }
    local onnx = exported(model)
    assert.are.equal(1, onnx.counts.Transpose)
    assert.is_nil(onnx.counts.Sqrt or onnx.counts.Reshape)      -- the statistics have become a scale and a shift
    assert.are.same({ 2, 1 }, { onnx.counts.Conv, onnx.counts.Mul })
  end)

  it("writes the weights as they are, and kernels filters first", function()
    local model = flow.Sequential { layers.Input { 4, 4, 2 }, layers.Conv2D(3, 2), layers.Flatten(), layers.Dense(300) }
    local kernel = model:get_weights()[1]:transpose { 4, 3, 1, 2 }:contiguous()
    local dense = model:get_weights()[3]
    local onnx = exported(model)
    local function bytes(t) return native.string(native.cast("const char *", native.data(t)), t.size * 4) end
    assert.is_true(onnx.weights["dense/kernel"].data == bytes(dense))
    local found
    for _, weight in pairs(onnx.weights) do
      if #weight.shape == 4 and weight.shape[1] == 3 then found = weight end
    end
    assert.are.same({ 3, 2, 2, 2 }, found.shape)
    assert.is_true(found.data == bytes(kernel))
  end)

  it("writes LSTM, GRU and SimpleRNN as ONNX' ops, with the weights of the inputs in them", function()
    local function node_of(layer)
      local onnx = exported(flow.Sequential { layers.Input { 7, 3 }, layer })
      for _, node in ipairs(onnx.nodes) do
        if onnx.weights[node.inputs[3]] then return onnx, node end
      end
    end
    local onnx, node = node_of(layers.LSTM(5))
    assert.equal("LSTM", node.type)
    assert.is_nil(onnx.counts.MatMul)                       -- the op multiplies the inputs itself
    assert.are.same({ 1, 20, 3 }, onnx.weights[node.inputs[2]].shape)
    assert.are.same({ 1, 20, 5 }, onnx.weights[node.inputs[3]].shape)
    assert.are.same({ 1, 40 }, onnx.weights[node.inputs[4]].shape)
    onnx, node = node_of(layers.GRU(4, { return_sequences = true }))
    assert.equal("GRU", node.type)
    assert.are.same({ 1, 12, 3 }, onnx.weights[node.inputs[2]].shape)
    assert.are.same({ "batch", 7, 4 }, onnx.outputs[1].shape)
    onnx, node = node_of(layers.SimpleRNN(6))
    assert.equal("RNN", node.type)
    assert.are.same({ 1, 6, 6 }, onnx.weights[node.inputs[3]].shape)
    onnx = exported(flow.Sequential { layers.Input({ 7 }, { dtype = "int32" }), layers.Embedding(9, 3, { mask_zero = true }),
      layers.LSTM(5) })
    assert.are.same({ nil, 7 }, { onnx.counts.LSTM, onnx.counts.Concat and onnx.counts.MatMul - 1 })      -- a mask: step by step
  end)

  it("knows several inputs and outputs by their names", function()
    local a, b = flow.Input({ 3 }, { name = "a" }), flow.Input({ 3 }, { name = "b", dtype = "int32" })
    local shared = layers.Dense(2, { name = "shared" })
    local onnx = exported(flow.Model { inputs = { a, b }, outputs = { shared(a), shared(layers.Rescaling(2)(b)) } })
    assert.are.same({ "a", "b" }, { onnx.inputs[1].name, onnx.inputs[2].name })
    assert.are.same({ 1, 6 }, { onnx.inputs[1].dtype, onnx.inputs[2].dtype })
    assert.are.same({ "shared", "shared_1" }, { onnx.outputs[1].name, onnx.outputs[2].name })
  end)

  it("joins any number of tensors by one node", function()
    local input, parts = flow.Input { 6 }, {}
    for i = 1, 40 do parts[i] = layers.Dense(2)(input) end
    local onnx = exported(flow.Model { inputs = input, outputs = layers.Concatenate()(parts) })
    assert.are.equal(40, select(2, types_of(onnx):gsub("MatMul", "")))
    assert.are.equal(1, select(2, types_of(onnx):gsub("Concat", "")))
  end)

  it("exports models written in Lua, given what goes in", function()
    local Twice = flow.Model:extend("Twice")
    function Twice:build() self.dense = layers.Dense(4) end
    function Twice:call(x) return self.dense(x) * 2 end
    local model = Twice()
    assert.is_truthy(message_of(model.export, model, folder .. "/m.onnx"):find("inputs = { { shape = {-1, 4} } }", 1, true))
    local onnx = exported(model, { inputs = { { shape = { -1, 4 }, name = "x" } } })
    assert.are.equal("MatMul Add Mul Identity", types_of(onnx))
    assert.are.same({ "x", "output" }, { onnx.inputs[1].name, onnx.outputs[1].name })
  end)

  it("writes outputs by name and nested outputs in their order", function()
    local x = flow.Input { 3 }
    local function dense(name) return layers.Dense(2, { name = name })(x) end
    local function names_of(model, options)
      local names = {}
      for i, output in ipairs(exported(model, options).outputs) do names[i] = output.name end
      return table.concat(names, " ")
    end
    assert.equal("kind price", names_of(flow.Model { inputs = x, outputs = { price = dense "a", kind = dense "b" } }))
    assert.equal("c d e", names_of(flow.Model { inputs = x, outputs = { dense "c", { dense "d", { dense "e" } } } }))
    local Several = flow.Model:extend("Several")
    function Several:call(t) return { zero = { t * 0, t * 1 }, all = t, ["and"] = t } end
    assert.equal("all and zero zero_1", names_of(Several(), { inputs = { { shape = { -1, 4 } } } }))
  end)

  it("names an op that ONNX lacks, and lists them", function()
    local Noisy = layers.Layer:extend("Noisy")
    function Noisy:build() self.dropout = layers.Dropout(0.5) end
    function Noisy:call(x) return self.dropout(x, { training = true }) end
    local model = flow.Sequential { layers.Input { 4 }, Noisy() }
    assert.is_truthy(message_of(model.export, model, folder .. "/m.onnx"):find("the op dropout has no ONNX form", 1, true))
    assert.is_false(flow.io.exists(folder .. "/m.onnx"))
    -- What only training steps, data pipelines or fusion make. An op that a prediction can hold gets a rule in core/onnx.
    local without = {}
    for _, name in ipairs {
      "fused", "casts", "transpose_filters", "dense", "pack", "sample_image", "sample_uniform", "batch_norm", "sparse_cross_entropy",
      "dropout",
      "random_uniform", "random_normal", "random_truncated_normal", "schedule", "all_reduce", "global_rows", "row_share", "all_gather",
      "convolution_gradient_relu", "batch_norm_relu", "gather_sum", "gather_dense", "attention", "attention_gradient", "layer_norm", "loop",
      "quantize", "quantize_weights", "quantized_convolution", "separable_convolution", "convolution_add",
      "cholesky", "solve", "solve_triangle", "lu", "qr", "eigh", "svd",      -- ONNX' operators take no matrices apart
    } do without[name] = true end
    local predicts = { slice_gradient = true, convolution_gradient = true, stop_gradient = true }
    local wrong = {}
    for op = 0, C.flow_op_count() - 1 do
      local name = native.string(C.flow_op_name(op))
      local trains = name:find("_gradient$") and not predicts[name] or C.flow_op_outputs(op) == 0
      local known, expected = C.flow_onnx_knows(op) == 1, not trains and not without[name]
      local what = expected and "the op %s has no line in a table of core/onnx (elementwise.c, movement.c, network.c, recurrent.c)"
        or "the op %s has an ONNX form: remove it from the list above"
      if known ~= expected then wrong[#wrong + 1] = what:format(name) end
    end
    assert.equal("", table.concat(wrong, "\n"))
  end)

  it("leaves nothing behind when memory runs out", function()
    local model = flow.Sequential { layers.Input { 6, 6, 2 }, layers.Conv2D(3, 2), layers.BatchNormalization(), layers.Flatten(),
                                    layers.Dense(200) }
    native.check(C.flow_trace_begin(native.context))
    local symbolic = require "flow.layers.symbolic"
    local x = symbolic.trace_input({ -1, 6, 6, 2 }, "float32")
    local y = model(x, { training = false })
    local list = native.pointers { y }
    local input, output = native.array("const char *", 1), native.array("const char *", 1)
    input[0], output[0] = "x", "y"
    local path, failures = folder .. "/m.onnx", 0
    collectgarbage()
    local before = C.flow_live_bytes()
    for after = 0, 2000 do
      C.flow_fail_allocation(after)
      local status = C.flow_trace_save_onnx(native.context, path, "m", list, 1, input, 1, output)
      C.flow_fail_allocation(-1)
      assert.are.equal(before, C.flow_live_bytes())
      if status == 0 then break end
      failures = failures + 1
      assert.are.equal(tonumber(C.FLOW_OUT_OF_MEMORY), status)
      assert.are.same({}, flow.io.listdir(folder))
    end
    C.flow_trace_abort(native.context)
    assert.is_true(failures > 20, failures)
    assert.are.same({ "m.onnx" }, flow.io.listdir(folder))
  end)

  it("writes a folder for servers", function()
    local model = flow.Sequential { layers.Input({ 3 }, { name = "facts" }), layers.Dense(2, { name = "classes" }) }
    model:export(folder .. "/served/", { class_names = { "rose", "tulip" } })
    assert.are.same({ "model.keras", "model.onnx", "signature.json" }, flow.io.listdir(folder .. "/served"))
    local file = assert(io.open(folder .. "/served/signature.json", "rb"))
    local signature = json.decode(file:read("*a"))
    file:close()
    assert.are.same({ name = "facts", dtype = "float32", shape = { json.null, 3 } }, signature.inputs[1])
    assert.are.same({ name = "classes", dtype = "float32", shape = { json.null, 2 } }, signature.outputs[1])
    assert.are.same({ "rose", "tulip" }, signature.class_names)
  end)

  it("takes Keras' format, with any name of the file", function()
    local model = flow.Sequential { layers.Input { 4 }, layers.Dense(2) }
    model:export(folder .. "/model.onnx")
    model:export(folder .. "/net.bin", { format = "onnx", verbose = false })
    assert.equal(support.read(folder .. "/model.onnx"), support.read(folder .. "/net.bin"))
    assert.matches("export: format is 'onnx', got the string \"tf_saved_model\"",
      message_of(model.export, model, folder .. "/a", { format = "tf_saved_model" }))
    assert.is_false(support.exists(folder .. "/a"))
  end)

  it("names what it cannot do", function()
    local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2) }
    assert.is_truthy(message_of(model.export, model, folder .. "/m.pb"):find("a path that ends in .onnx gives an ONNX model", 1, true))
    assert.is_truthy(message_of(model.export, model, folder .. "/no/m.onnx"):find("No such file", 1, true))
    assert.is_truthy(message_of(model.export, model, "m.onnx", { opset = 17 }):find('unknown option "opset"', 1, true))
    local unbuilt = flow.Sequential { layers.Dense(2) }
    assert.is_truthy(message_of(unbuilt.export, unbuilt, folder .. "/m.onnx"):find("export needs the shape of the input", 1, true))
    local numbers = flow.Input({ 3 }, { dtype = "int64" })
    local hashed = flow.Model { inputs = numbers, outputs = layers.Hashing(5, { name = "bins" })(numbers) }
    assert.is_truthy(message_of(hashed.export, hashed, folder .. "/m.onnx"):find(
      'Hashing "bins" prepares data on the host and has no ONNX form', 1, true))
    assert.are.same({}, flow.io.listdir(folder))
    assert.are.equal(0, C.flow_trace_depth(native.context))
  end)
end)
