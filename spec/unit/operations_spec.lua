-- Ops on symbolic tensors are saved in Keras' form and come back: every op with a class of keras.ops, its options and its constants.
local flow = require "flow"
local model_files = require "spec.support.model_files"
local support = require "spec.support.init"

-- Ops that Keras has no class for, so that files name one that only flowlua reads.
local NOT_OF_KERAS = {}

local cases = {
  concat = function(x) return flow.concat({ x, x * 2 }, -1) end, concat_named = function(x) return flow.concat({ x, x }, { axis = 3 }) end,
  stack = function(x) return flow.stack({ x, x }, 2) end,
  with_a_constant = function(x) return flow.concat({ x, x:reshape { -1, 2, 6 }:reshape { -1, 3, 4 } }, 2) end,
  reshape = function(x) return x:reshape { -1, 6, 2 } end, reshape_numbers = function(x) return x:reshape(-1, 12) end,
  matmul = function(x) return x:matmul(flow.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } }) end,
  lists = function(x) return x + { 1, 2, 3, 4 } end, whole = function(x) return x * flow.tensor { 2LL, 3LL, 4LL, 5LL } end,
  powers = function(x) return flow.pow(2, x) - 1 / (x * x + 1) end, mod = function(x) return x % 1.5 end,
  sums = function(x) return x:sum(2) + x:mean(-2) + x:max { axis = 2 } + x:min(2) + x:prod(2) + x:std(2) + x:var(2) end,
  keepdims = function(x) return x:sum({ 2, 3 }, true) + x:mean({ axis = -1, keepdims = true }) end,
  logic = function(x) return flow.where(flow.logical_and(x:gt(0), x:le(1)), x, -x):any(2) end,
  all = function(x) return flow.logical_or(x:eq(x), flow.logical_not(x:ne(0))):all(-1) end,
  clip = function(x) return flow.clip(x, -0.5, 0.5) end, gelu = function(x) return flow.gelu(x) - flow.gelu(x, false) end,
  gelu_exact = function(x) return flow.gelu(x, { approximate = false }) end,
  slopes = function(x) return flow.leaky_relu(x, 0.3) + flow.elu(x, { alpha = 0.5 }) + flow.round(x, 1) end,
  activations = function(x) return flow.leaky_relu(x) + flow.elu(x) + flow.selu(x) + flow.silu(x) + flow.relu6(x) + flow.softsign(x) end,
  softmax = function(x) return x:softmax() + x:softmax(2) + x:log_softmax(-1) end,
  transpose = function(x) return x:transpose { 1, 3, 2 } end, permute = function(x) return x:permute(1, 3, 2) end,
  swapaxes = function(x) return x:swapaxes(2, 3) end, expand = function(x) return x:expand_dims(2):squeeze(2):expand_dims(-1) end,
  flip = function(x) return flow.flip(x, 2) end, tile = function(x) return flow.tile(x, { 1, 2, 1 }) end,
  repeat_ = function(x) return flow.repeat_(x, 2, 3) end, take = function(x) return flow.take(x, { 1, 3, -1 }, 3) end,
  pad = function(x) return flow.pad(x, { { 0, 0 }, { 1, 2 }, { 0, 1 } }, { constant_values = 3 }) end,
  pad_reflect = function(x) return flow.pad(x, { { 0, 0 }, { 1, 1 }, { 0, 0 } }, "reflect") end,
  split = function(x)
    local parts = flow.split(x, 2, 3)
    return parts[1] - parts[2]
  end,
  cuts = function(x) return flow.split(x, { 1, 3 }, -1)[2] end, unstack = function(x) return flow.unstack(x, nil, 2)[3] end,
  index = function(x) return x[{ {}, 2 }] end, ranges = function(x) return x[{ {}, { 2, 3 }, { 1, -2 } }] end,
  from_the_end = function(x) return x[{ {}, -1, { -3, -1, 2 } }] end, cast = function(x) return x:cast("int32"):to("float32") end,
  classes = function(x) return x:classes() end, one_hot = function(x) return flow.one_hot(x:classes(), 4) end,
  likes = function(x) return flow.zeros_like(x) + flow.ones_like(x, { dtype = "float32" }) end,
  functions = function(x)
    return x:abs():sqrt() + x:square():log1p() + x:exp():expm1() + x:sign() + x:floor() + x:ceil() + x:round() + x:erf()
      + flow.rsqrt(x * x + 1)
  end,
}

describe("ops on symbolic tensors", function()
  local x = flow.random.uniform({ 5, 3, 4 }, { minval = -2, maxval = 2, seed = 3 })

  local names = {}
  for name in pairs(cases) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    it("are saved and read: " .. name, function()
      local input = flow.Input { 3, 4 }
      local model = flow.Model { inputs = input, outputs = cases[name](input) }
      local expected = model:predict(x, { verbose = 0 })
      local path = support.path(".keras")
      model:save(path)
      local again = flow.load_model(path)
      local found = again:predict(x, { verbose = 0 })
      assert.same(expected.shape, found.shape)
      assert.equals(expected.dtype, found.dtype)
      assert.same(expected:totable(), found:totable())
      again:save(path)      -- what was read is as good as what was written
      assert.same(expected:totable(), flow.load_model(path):predict(x, { verbose = 0 }):totable())
      os.remove(path)
      -- The same ops give the same on tensors.
      local eager = cases[name](x)
      assert.same(eager.shape, found.shape)
      assert.is_true((eager:to("float64") - found:to("float64")):abs():max():item() <= 1e-5)
    end)
  end

  it("give zeros the same sign, whichever reader opens their file", function()
    local input = flow.Input { 4 }
    local outputs = {}
    for _, f in ipairs { "elu", "leaky_relu" } do
      for _, slope in ipairs { false, 0.3, 1 } do outputs[#outputs + 1] = slope and flow[f](input, slope) or flow[f](input) end
    end
    for _, f in ipairs { "relu", "relu6", "selu", "silu", "gelu", "hard_silu" } do outputs[#outputs + 1] = flow[f](input) end
    model_files.assert_returns(flow.Model { inputs = input, outputs = outputs }, { flow.tensor { { -0.0, 0, -1, 1 } } })
  end)

  it("give as many outputs as a model has", function()
    local input, outputs = flow.Input { 3, 4 }, {}
    for i = 1, 40 do outputs[i] = input * i end
    local model = flow.Model { inputs = input, outputs = outputs }
    for _, found in ipairs { model:predict(x, { verbose = 0, batch_size = 2 }), model:predict_on_batch(x) } do
      assert.equals(40, #found)
      for i = 1, 40 do assert.same((x * i):totable(), found[i]:totable()) end
    end
    for i = 41, 300 do outputs[i] = input + i end
    local large = flow.Model { inputs = input, outputs = outputs }
    local message = support.message_of(function() large:predict(x, { verbose = 0 }) end)
    assert.is_truthy(message:find("300 outputs, a model has at most 256", 1, true))
  end)

  it("that no file holds say so", function()
    local input, path = flow.Input { 3, 4 }, support.path(".keras")
    local v = flow.Variable { 1, 2, 3, 4 }
    for text, output in pairs { ["operand 2 of mul is a variable"] = input * v,
                                ["operand 2 of flow.isclose on symbolic tensors is a variable"] = flow.isclose(input, v) } do
      local model = flow.Model { inputs = input, outputs = output }
      assert.is_truthy(support.message_of(function() model:save(path) end):find(text, 1, true), text)
    end
  end)

  it("that Keras has not need Lua, and say so to programs without", function()
    local input, path = flow.Input { 3, 4 }, support.file("argmax.keras", "")
    local model = flow.Model { inputs = input, outputs = flow.argmax(input, 2) }
    model:save(path)
    local ok, message = pcall(model_files.predict_in_c, path, { flow.ones { 2, 3, 4 } })
    assert.is_false(ok)
    assert.is_truthy(message:find("is the operation argmax of flowlua.ops, which is not supported in files", 1, true), message)
  end)

  it("that only gradients are written with are in no file", function()
    local native, input = require "flow.ffi", flow.Input { 4 }
    local path, other = support.path(".keras"), support.path(".keras")
    flow.Model { inputs = input, outputs = flow.maximum(input, input) }:save(path)
    local archive_out, writer_out = native.out("flow_archive"), native.out("flow_archive_writer")
    local text, bytes = native.array("const char *", 1), native.array("double", 1)
    native.check(native.C.flow_archive_open(path, archive_out))
    native.check(native.C.flow_archive_writer_new(other, writer_out))
    for index = 0, native.C.flow_archive_count(archive_out[0]) - 1 do
      local name = native.string(native.C.flow_archive_name(archive_out[0], index))
      native.check(native.C.flow_archive_text(archive_out[0], name, text, bytes))
      local content = native.string(text[0], bytes[0])
      if name == "config.json" then content = content:gsub('"Maximum"', '"ReluGradient"') end
      native.check(native.C.flow_archive_writer_add_text(writer_out[0], name, content, #content))
    end
    native.check(native.C.flow_archive_writer_commit(writer_out[0]))
    native.C.flow_archive_writer_release(writer_out[0])
    native.C.flow_archive_release(archive_out[0])
    local ok, message = pcall(model_files.predict_in_c, other, { flow.ones { 2, 4 } })
    assert.is_false(ok)
    assert.is_truthy(message:find("is the operation ReluGradient of keras.src.ops.numpy, which is not supported", 1, true), message)
    assert.is_truthy(support.message_of(function() flow.load_model(other) end):find("ReluGradient", 1, true))
  end)

  -- An op whose class Keras has in another module than numpy, or calls otherwise, has a word in `classes` of core/models/operations.c.
  it("have the classes of Keras by the library's table of ops", function()
    local native, found, rows, unknown = require "flow.ffi", {}, {}, {}
    for module, list in pairs(require "spec.golden.operation_classes") do
      for class in list:gmatch("%S+") do found[class .. " " .. module] = true end
    end
    for index = 0, 200 do
      local name, class, module, rest = native.text(native.C.flow_operation_row, index):match("^(%S+) (%S+) (%S+) (.*)$")
      if not name then break end
      rows[name] = rest
      if not found[class .. " " .. module] and not NOT_OF_KERAS[name] then
        unknown[#unknown + 1] = ("%s: keras.src.ops.%s has no %s"):format(name, module, class)
      end
    end
    assert.equal("", table.concat(unknown, "\n"))
    assert.is_nil(rows.relu_gradient)
    assert.same({ "1 plain", "2 plain", "1 reduction", "1 plain" }, { rows.tan, rows.divide_no_nan, rows.logsumexp, rows.hard_silu })
  end)
end)

describe("a number beside whole numbers", function()
  it("is a whole one in a file, since 2.0 makes float32 of them in Keras", function()
    local ids, x = flow.Input({ 3 }, { dtype = "int64" }), flow.Input { 3 }
    local text = flow.Model({ ids, x }, { ids * 2, x * 2 }):to_json():gsub("%s", "")
    assert.equal("int64", (ids * 2).dtype)
    assert.truthy(text:find("},2],", 1, true), text)
    assert.truthy(text:find("},2.0],", 1, true), text)
  end)
end)
