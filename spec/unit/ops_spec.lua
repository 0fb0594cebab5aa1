-- ops_spec.lua: ops as functions, methods and operators: values, dtypes of Lua numbers, axes from 1, error texts.
local support = require "spec.support.init"
local flow = require "flow"
local message_of = support.message_of

local function near(expected, found, tolerance)
  tolerance = tolerance or 1e-5
  if type(expected) == "table" then
    assert.equal(#expected, #found)
    for i = 1, #expected do near(expected[i], found[i], tolerance) end
  else
    assert.is_true(math.abs(expected - found) <= tolerance, ("expected %.9g, found %.9g"):format(expected, found))
  end
end

describe("operators", function()
  local a = flow.tensor { { 1, 2 }, { 3, 4 } }

  it("work elementwise and broadcast", function()
    assert.same({ { 2, 3 }, { 4, 5 } }, (a + 1):totable())
    assert.same({ { 2, 3 }, { 4, 5 } }, (1 + a):totable())
    assert.same({ { 0, -1 }, { -2, -3 } }, (1 - a):totable())
    assert.same({ { 10, 40 }, { 30, 80 } }, (a * flow.tensor { 10, 20 }):totable())
    assert.same({ { 1, 0.5 }, { 1, 2 } }, (a / flow.tensor { { 1, 4 }, { 3, 2 } }):totable())
    assert.same({ { 1, 4 }, { 9, 16 } }, (a ^ 2):totable())
    assert.same({ { 1, 0 }, { 1, 0 } }, (a % 2):totable())
    assert.same({ { -1, -2 }, { -3, -4 } }, (-a):totable())
    assert.same({ { 2, 4 }, { 4, 6 } }, (a + { 1, 2 }):totable())
  end)

  it("give Lua numbers the tensor's dtype if it can hold them", function()
    local bytes = flow.tensor({ 10, 200 }, { dtype = "uint8" })
    assert.equal("uint8", (bytes + 1).dtype)
    assert.equal("int32", (bytes + 300).dtype)
    assert.same({ 310, 500 }, (bytes + 300):totable())
    assert.same({ 9.5, 199.5 }, (bytes - 0.5):totable())
    assert.equal("float32", (bytes / 255).dtype)
    assert.equal("float16", (flow.ones({ 1 }, { dtype = "float16" }) * 2).dtype)
    assert.equal("float64", (flow.ones({ 1 }, { dtype = "float64" }) * 0.1).dtype)
    assert.equal(0.1, (flow.ones({ 1 }, { dtype = "float64" }) * 0.1):item())
  end)

  it("promote mixed dtypes", function()
    local whole = flow.tensor({ 1, 2 }, { dtype = "int32" })
    assert.equal("float32", (whole + flow.ones { 2 }).dtype)
    assert.equal("int64", (whole + flow.ones({ 2 }, { dtype = "int64" })).dtype)
  end)

  it("compare elementwise by name", function()
    assert.same({ { true, false }, { false, false } }, a:lt(2):totable())
    assert.same({ { true, true }, { false, false } }, a:le(2):totable())
    assert.same({ { false, true }, { false, false } }, a:eq(2):totable())
    assert.same({ { true, false }, { true, true } }, flow.not_equal(a, 2):totable())
    assert.same({ { false, false }, { true, true } }, a:gt(2):totable())
    assert.same({ { false, true }, { true, true } }, a:ge(2):totable())
  end)

  it("say what does not fit", function()
    assert.truthy(message_of(function() return a + flow.ones { 3 } end):find("{2, 2} and {3}", 1, true))
    assert.equal('flow.add: expected a tensor or a number, got the string "1"', message_of(function() return a + "1" end))
    local two = "flow.%s: expected a tensor or a number, got nil; it takes two: flow.%s(a, b), or a:%s(b) with a colon"
    assert.equal((two:gsub("%%s", "add")), message_of(function() return a + nil end))
    for _, name in ipairs { "add", "eq", "maximum", "pow", "matmul" } do
      assert.equal((two:gsub("%%s", name)), message_of(function() local _ = a[name](a) end))
    end
  end)
end)

describe("elementwise functions", function()
  local x = flow.tensor { -1, 0, 2 }

  it("have their values", function()
    near({ 1, 0, 2 }, x:abs():totable())
    near({ -1, 0, 1 }, flow.sign(x):totable())
    near({ 1, 0, 4 }, x:square():totable())
    near({ 0, 0, 2 }, x:relu():totable())
    near({ math.exp(-1), 1, math.exp(2) }, x:exp():totable())
    near({ math.tanh(-1), 0, math.tanh(2) }, x:tanh():totable())
    near({ 1 / (1 + math.exp(1)), 0.5, 1 / (1 + math.exp(-2)) }, x:sigmoid():totable())
    near({ math.log(3), math.sqrt(3) }, { flow.tensor(3):log():item(), flow.tensor(3):sqrt():item() })
    near({ 0, 0, 1 }, flow.clip(x, 0, 1):totable())
    assert.same({ -1, 1, 1 }, flow.where(x:lt(0), -1, 1):totable())
    assert.same({ 0, 1, 2 }, flow.maximum(x, { 0, 1, 1 }):totable())
    assert.same({ true, false }, flow.isnan(flow.tensor { 0 / 0, 1 }):totable())
    assert.same({ true, true, false }, flow.logical_or(x:lt(0), x:eq(0)):totable())
  end)

  it("activations follow Keras", function()
    near({ -0.15880801, 0, 1.9545977 }, x:gelu():totable(), 1e-6)      -- keras.ops.gelu
    near({ -0.15865525, 0, 1.9544997 }, x:gelu({ approximate = false }):totable(), 1e-6)
    near({ math.exp(-1) - 1, 0, 2 }, x:elu():totable())
    near({ 0.09003057, 0.24472847, 0.66524096 }, flow.tensor({ 1, 2, 3 }):softmax():totable())
    near({ { 0.5, 0.5 }, { 0.5, 0.5 } }, flow.ones({ 2, 2 }):softmax(1):totable())
    near({ -2.4076059, -1.4076059, -0.4076059 }, flow.tensor({ 1, 2, 3 }):log_softmax():totable())
  end)

  it("do not need their argument to be a tensor", function()
    assert.equal(3, flow.abs(-3):item())
    assert.same({ 1, 4 }, flow.square({ 1, 2 }):totable())
  end)
end)

describe("reductions", function()
  local a = flow.tensor { { 1, 5 }, { 4, 2 } }

  it("take axes from 1, lists of axes and keepdims", function()
    assert.equal(12, a:sum():item())
    assert.same({ 5, 7 }, a:sum(1):totable())
    assert.same({ { 3 }, { 3 } }, a:mean(-1, true):totable())
    assert.same({ { 12 } }, a:sum({ 1, 2 }, true):totable())
    assert.same({ { 5, 7 } }, a:sum({ axis = 1, keepdims = true }):totable())
    assert.same({ 5, 4 }, a:max(2):totable())
    assert.same({ 1, 2 }, a:min(1):totable())
    assert.equal(40, a:prod():item())
    assert.is_true(a:gt(0):all():item())
    assert.same({ true, true }, a:gt(3):any(1):totable())
    near({ 2.25, 2.25 }, a:var(1):totable())
    near(math.sqrt(2.5), a:std():item())
  end)

  it("take the dtype of products, and a number that is among the elements", function()
    local products = flow.tensor({ 3, 5 }, { dtype = "int32" }):prod { dtype = "float64" }
    assert.same({ "float64", 15 }, { products.dtype, products:item() })
    assert.same({ 5, 4.5 }, a:max(2, false, 4.5):totable())
    local none = flow.zeros({ 0 }, { dtype = "int32" }):max { initial = 7 }
    assert.same({ "int32", 7 }, { none.dtype, none:item() })
    local dataless = message_of(function() flow.nanmedian(flow.zeros { 0, 2 }) end)
    assert.truthy(dataless:find("flow.nanmedian: there are no elements to choose from", 1, true), dataless)
  end)

  it("give each result one owner: an op of one result after one of two", function()
    local pictures = flow.random.uniform({ 1, 4, 4, 1 }, { seed = 1 })
    local largest = flow.keras.ops.max_pool(pictures, 2)
    local before = largest:totable()
    local mean = flow.keras.ops.average_pool(pictures, 2)
    mean:close()
    collectgarbage()
    collectgarbage()
    for _ = 1, 20 do flow.keras.ops.average_pool(pictures, 2) end
    collectgarbage()
    assert.same(before, largest:totable())
    local tools = require "flow.tensor.composed.tools"
    local message = message_of(function() tools.apply("relu", { pictures }, nil, 2) end)
    assert.truthy(message:find("flow.relu: 2 results were expected, the op has 1", 1, true), message)
  end)

  it("round whole numbers to whole numbers", function()
    local tens = flow.round(flow.tensor({ 15, 25, -35, 2 }, { dtype = "int32" }), -1)
    assert.same({ "int32", 20, 20, -40, 0 }, { tens.dtype, unpack(tens:totable()) })
  end)

  it("of functions with ends refuse ends of two signs", function()
    local message = message_of(function() flow.geomspace(-1, 3, 3) end)
    assert.truthy(message:find("start and stop have one sign and are not 0, got the number -1 and the number 3", 1, true), message)
  end)

  it("argmax gives positions, classes labels", function()
    assert.same({ 2, 1 }, a:argmax(2):totable())
    assert.same({ 1, 2 }, a:argmin(1):totable())
    assert.equal(2, a:argmax():item())
    assert.equal("int64", a:argmax(2).dtype)
    assert.same({ 1, 0 }, a:classes():totable())
  end)

  it("name an axis that is not there", function()
    assert.equal("flow.sum: axis 3 is out of range: there are 2 axes, counted from 1", message_of(function() a:sum(3) end))
    assert.equal("flow.sum: axis 0 is out of range: there are 2 axes, counted from 1", message_of(function() a:sum(0) end))
    assert.equal("flow.mean: an axis is a whole number, got true", message_of(function() a:mean(true) end))
    assert.equal('flow.max: unknown option "keepdim"; did you mean "keepdims"?',
      message_of(function() a:max { axis = 1, keepdim = true } end))
  end)
end)

describe("shapes", function()
  local a = flow.arange(6, { dtype = "float32" })

  it("reshape, infer, flatten, squeeze and expand", function()
    assert.same({ { 0, 1, 2 }, { 3, 4, 5 } }, a:reshape({ 2, 3 }):totable())
    assert.same({ 3, 2 }, a:reshape(-1, 2).shape)
    assert.same({ 6 }, a:reshape(1, 6, 1):flatten().shape)
    assert.same({ 6 }, a:reshape(1, 6, 1):squeeze().shape)
    assert.same({ 6, 1 }, a:reshape(1, 6, 1):squeeze(1).shape)
    assert.same({ 1, 6 }, a:expand_dims(1).shape)
    assert.same({ 6, 1 }, a:expand_dims(-1).shape)
    assert.same({ { 0, 1 }, { 0, 1 } }, a[{ { 1, 2 } }]:broadcast_to(2, 2):totable())
  end)

  it("permute axes", function()
    local b = a:reshape(1, 2, 3)
    assert.same({ 3, 2, 1 }, b:transpose().shape)
    assert.same({ { { 0, 3 } }, { { 1, 4 } }, { { 2, 5 } } }, b:transpose({ 3, 1, 2 }):totable())
    assert.same({ 3, 1, 2 }, b:permute(3, 1, 2).shape)
    assert.same({ 3, 2, 1 }, b:swapaxes(1, -1).shape)
    assert.same({ { 0, 3 }, { 1, 4 }, { 2, 5 } }, a:reshape(2, 3):T():totable())
  end)

  it("join and stack along axes from 1", function()
    local b = a:reshape(2, 3)
    assert.same({ 4, 3 }, flow.concat({ b, b }).shape)
    assert.same({ { 0, 1, 2, 0 }, { 3, 4, 5, 0 } }, flow.concat({ b, flow.zeros { 2, 1 } }, 2):totable())
    assert.same({ 2, 6 }, flow.concatenate({ b, b }, { axis = -1 }).shape)
    assert.same({ 2, 2, 3 }, flow.stack({ b, b }).shape)
    assert.same({ 2, 3, 2 }, flow.stack({ b, b }, -1).shape)
  end)

  it("say what does not fit", function()
    assert.truthy(message_of(function() a:reshape { 4 } end):find("{6}", 1, true))
    assert.equal("reshape(): dimensions 1 and 2 are both -1, at most one can be worked out",
      message_of(function() a:reshape(-1, -1) end))
    assert.equal("squeeze(): axis 1 of shape {6} is not 1", message_of(function() a:squeeze(1) end))
    assert.equal("transpose() takes the list of all axes in their new order, e.g. {2, 1}; swapaxes(1, 2) swaps two",
      message_of(function() a:transpose(1) end))
    assert.equal("permute(): axis 1 is named twice", message_of(function() a:reshape(2, 3):permute(1, 1) end))
  end)
end)

describe("other ops", function()
  it("multiply matrices", function()
    local a = flow.tensor { { 1, 2 }, { 3, 4 } }
    assert.same({ { 7, 10 }, { 15, 22 } }, a:matmul(a):totable())
    assert.same({ 5, 11 }, a:matmul(flow.tensor { 1, 2 }):totable())
    assert.truthy(message_of(function() a:matmul(flow.ones { 3, 3 }) end):find("{2, 2}", 1, true))
  end)

  it("cast, and leave alone what is right already", function()
    local a = flow.tensor { 1.7, -1.7 }
    assert.same({ 1, -1 }, a:to("int32"):totable())
    assert.equal("bfloat16", a:astype("bfloat16").dtype)
    assert.is_true(a:to("float32") == a)
    assert.is_true(a:to("cpu") == a)
    assert.equal("float16", a:to("cpu", "float16").dtype)
    assert.equal("float16", a:to("float16", "cpu").dtype)
    assert.equal('to(): a device, a dtype or one of each, got the string "cpu" and the string "cpu:0"',
      message_of(function() a:to("cpu", "cpu:0") end))
    assert.matches('^device "gpu:63" does not exist: this process has .*"cpu:0"', message_of(function() a:to("gpu:63") end))
  end)

  it("one_hot and the like", function()
    local labels = flow.tensor({ 2, 0, 5 }, { dtype = "uint8" })
    assert.same({ { 0, 0, 1 }, { 1, 0, 0 }, { 0, 0, 0 } }, flow.one_hot(labels, 3):totable())
    local halves = flow.tensor { 0.5, 1.9, -0.5, -1.2 }
    assert.same({ { 1, 0 }, { 0, 1 }, { 1, 0 }, { 0, 0 } }, flow.one_hot(halves, 2):totable())
    local input = flow.Input { 4 }
    local path = support.folder() .. "/one_hot.keras"
    flow.Model({ inputs = input, outputs = flow.one_hot(input, 2) }):save(path)
    assert.same({ { { 1, 0 }, { 0, 1 }, { 1, 0 }, { 0, 0 } } },
      flow.models.shared(path):predict(halves:reshape { 1, 4 }, { verbose = 0 }):totable())
    assert.same({ 0, 0, 0 }, flow.zeros_like(labels):totable())
    assert.equal("uint8", flow.ones_like(labels).dtype)
    assert.same({ 0.5, 0.5, 0.5 }, flow.full_like(labels, 0.5, { dtype = "float32" }):totable())
  end)
end)

describe("flow.random", function()
  it("gives the same tensor for the same seed", function()
    local a = flow.random.normal({ 3, 2 }, { seed = 7 })
    assert.same(a:totable(), flow.random.normal({ 3, 2 }, { seed = 7 }):totable())
    assert.are_not.same(a:totable(), flow.random.normal({ 3, 2 }, { seed = 8 }):totable())
    flow.set_random_seed(5)
    local b, c = flow.random.uniform({ 4 }), flow.random.uniform({ 4 })
    assert.are_not.same(b:totable(), c:totable())
    flow.set_random_seed(5)
    assert.same(b:totable(), flow.random.uniform({ 4 }):totable())
  end)

  it("has the moments and ranges asked for", function()
    local normal = flow.random.normal({ 20000 }, { seed = 1, mean = 3, stddev = 2 })
    near(3, normal:mean():item(), 0.06)
    near(2, normal:std():item(), 0.06)
    local uniform = flow.random.uniform({ 20000 }, { seed = 2, minval = -1, maxval = 1 })
    near(0, uniform:mean():item(), 0.03)
    assert.is_true(uniform:min():item() >= -1 and uniform:max():item() < 1)
    local truncated = flow.random.truncated_normal({ 20000 }, { seed = 3 })
    assert.is_true(truncated:abs():max():item() <= 2)
    local whole = flow.random.randint({ 1000 }, 2, 5, { seed = 4 })
    assert.equal("int32", whole.dtype)
    assert.equal(2, whole:min():item())
    assert.equal(4, whole:max():item())
  end)

  it("permutes positions and rows", function()
    local order = flow.random.permutation(50, { seed = 1 }):totable()
    local seen = {}
    for _, position in ipairs(order) do seen[position] = true end
    for i = 1, 50 do assert.is_true(seen[i]) end
    local rows = flow.random.shuffle(flow.arange(10, { dtype = "float32" }):reshape(5, 2), { seed = 3 })
    assert.same({ 20, 25 }, rows:sum(1):totable())
    assert.same({ 1, 1, 1, 1, 1 }, (rows[{ {}, 2 }] - rows[{ {}, 1 }]):totable())
  end)

  it("names a wrong option", function()
    assert.equal('flow.random.normal: unknown option "std"; did you mean "stddev"?',
      message_of(function() flow.random.normal({ 1 }, { std = 1 }) end))
    assert.equal("flow.random.uniform: a seed is a whole number from 0, got the number -1",
      message_of(function() flow.random.uniform({ 1 }, { seed = -1 }) end))
  end)
end)

describe("messages of ops", function()
  local function has(text, f)
    local message = message_of(f)
    assert.truthy(message:find(text, 1, true), message)
  end

  it("count axes from 1", function()
    has("inputs 1 and 2 have shapes {2, 3} and {2, 4}; they may differ along axis 1 only",
      function() flow.concat({ flow.ones { 2, 3 }, flow.ones { 2, 4 } }, 1) end)
    has("inputs 1 and 3 have shapes {2, 3} and {1, 3}; they may differ along axis 2 only",
      function() flow.concat({ flow.ones { 2, 3 }, flow.ones { 2, 3 }, flow.ones { 1, 3 } }, -1) end)
    has("axis 3 is out of range: there are 2 axes, counted from 1", function() flow.ones({ 2, 3 }):sum(3) end)
    has("axis 2 (counted from 1) is given twice", function() flow.ones({ 2, 3 }):sum { 2, -1 } end)
  end)

  it("send several positions to flow.take", function()
    has("flow.take(x, positions, axis) takes several positions", function() return flow.ones({ 3, 2 })[flow.tensor { 1, 2 }] end)
  end)

  it("of losses name y_true and y_pred with their shapes", function()
    local input = flow.Input { 3 }
    local model = flow.Model { inputs = input, outputs = flow.layers.Dense(3)(input) }
    model:compile { loss = "mse" }
    has("mean_squared_error: y_true {4, 5} and y_pred {4, 3} do not fit", function()
      model:train_on_batch(flow.ones { 4, 3 }, flow.ones { 4, 5 })
    end)
    has("y_true {4, 2} does not fit y_pred {4, 3}: expected integer labels of one dimension less, {4}",
      function() flow.losses.SparseCategoricalCrossentropy()(flow.zeros { 4, 2 }, flow.full({ 4, 3 }, 0.3)) end)
    local scores = flow.ones { 4, 3 }
    has("y_true {5} does not fit y_pred {4, 3}", function() flow.metrics.sparse_categorical_accuracy(flow.zeros { 5 }, scores) end)
    has("y_true {4, 2} and y_pred {4, 3} do not fit", function() flow.metrics.binary_accuracy(flow.zeros { 4, 2 }, scores) end)
  end)
end)
