-- ops_spec.lua: the functions of flow.keras.ops against Keras', those of flow.image against tf.image's (ops.py): values and gradients,
-- eager, traced with known sizes, and traced with rows that are not known, where an op may say that it needs to know them.
require "spec.support.init"
local flow = require "flow"

local folder = debug.getinfo(1, "S").source:match("^@(.*)ops_spec%.lua$")
local arrays = setmetatable({}, { __index = function(_, name) return flow.load_npz(folder .. "values/ops.npz", name) end })

local function values_of(x)
  if type(x) == "number" or type(x) == "boolean" then x = flow.tensor(x) end
  return x
end

-- The tensors of nested lists of results, in their order.
local function leaves(x, list)
  list = list or {}
  if type(x) == "table" and getmetatable(x) == nil then
    for _, entry in ipairs(x) do leaves(entry, list) end
  else
    list[#list + 1] = values_of(x)
  end
  return list
end

local function assert_same(expected, actual, tolerance, what)
  assert.same(expected.shape, actual.shape, what .. ": the shape")
  assert.equal(expected.dtype:find "float" ~= nil, actual.dtype:find "float" ~= nil, what .. ": " .. actual.dtype)
  assert.equal(expected.dtype == "bool", actual.dtype == "bool", what .. ": " .. actual.dtype)
  local a, b = expected:to("float64"):flatten():totable(), actual:to("float64"):flatten():totable()
  local largest = 1
  for _, x in ipairs(a) do largest = math.max(largest, math.abs(x) < math.huge and math.abs(x) or 0) end
  for i, x in ipairs(a) do
    local y = b[i]
    local same = x == y or x ~= x and y ~= y or math.abs(x - y) <= tolerance * largest
    assert.is_true(same, ("%s: element %d is %.12g, Keras has %.12g"):format(what, i, y, x))
  end
end

local function weighted_sum(list)
  local total
  for _, y in ipairs(list) do
    if y.dtype:find "float" then
      local count = y.size
      local weights = flow.cos(flow.arange(count, { dtype = "float64" })) + 0.1
      local sum = flow.sum(flow.reshape(y, { count }) * weights)
      total = total and total + sum or sum
    end
  end
  return total
end

local function inputs_of(case) return case.inputs or 1 end

local function function_of(case)
  local letters = ("a, b, c, d, e, f, g, h"):sub(1, math.max(3 * inputs_of(case) - 2, 0))
  local text = ("return function(ops, tf) return function(%s) return %s end end"):format(letters, case[3])
  return assert(loadstring(text))()(flow.keras.ops, flow)
end

local function check(case, prefix, results, tolerance, what)
  assert.equal(case.outputs or 1, #results, what .. ": the number of results")
  for i, y in ipairs(results) do
    assert_same(arrays[prefix .. "_out" .. i - 1], y, tolerance, what)
  end
end

-- The same inputs as tensors of a trace whose sizes are known: sums over a batch of one.
local function traced(f, inputs)
  local list, dtypes = {}, {}
  for i, x in ipairs(inputs) do list[i], dtypes[i] = x:expand_dims(1), x.dtype end
  return leaves { flow.fn(function(...)
    local own = {}
    for i, x in ipairs { ... } do own[i] = dtypes[i] == "bool" and x:any(1) or x:max(1):to(dtypes[i]) end
    return unpack(leaves { f(unpack(own)) })
  end)(unpack(list)) }
end

-- Case number `number` of those that make the same call.
local function run_case(case, number)
  local prefix, inputs = tostring(number), {}
  for i = 1, inputs_of(case) do inputs[i] = arrays[prefix .. "_in" .. i - 1] end
  local f, tolerance = function_of(case), case.tolerance or 1e-9
  local what = case[3] .. " #" .. prefix
  check(case, prefix, leaves { f(unpack(inputs)) }, tolerance, what)
  if case.gradients then
    local watched, tape = {}, flow.GradientTape()
    for i, input in ipairs(case.gradients) do watched[i] = inputs[input] end
    tape:watch(watched)
    local loss = tape:record(function() return weighted_sum(leaves { f(unpack(inputs)) }) end)
    local gradients = tape:gradient(loss, watched, nil, "zero")
    for i, input in ipairs(case.gradients) do
      assert_same(arrays[prefix .. "_gradient" .. input - 1], gradients[i], tolerance, what .. ": gradient " .. input)
    end
  end
  if case.traced ~= false and #inputs > 0 then
    check(case, prefix, traced(f, inputs), tolerance, what .. ", traced")
  end
end

local cases, names = {}, {}
for _, file in ipairs(flow.io.gfile.listdir(folder .. "manifest/ops")) do
  for name, list in pairs(dofile(folder .. "manifest/ops/" .. file)) do cases[name], names[#names + 1] = list, name end
end
table.sort(names)

describe("flow.keras.ops", function()
  for _, name in ipairs(names) do
    it(name .. " computes what Keras' does", function()
      for _, case in ipairs(cases[name]) do
        for number = case[1], case[2] do run_case(case, number) end
      end
    end)
  end
end)
