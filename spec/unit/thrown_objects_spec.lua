-- thrown_objects_spec.lua: an object that a script's function throws leaves the call that ran the function unchanged, if it is not a
-- string; and an error of a library's function has the script's line.
local flow = require "flow"
require "spec.support.init"

local Dataset = flow.data.Dataset
local PROBLEM = { code = 7 }

local function throw() error(PROBLEM) end
local function generator() return throw end
local function numbers(...)
  local specs = {}
  for i, shape in ipairs { ... } do specs[i] = flow.TensorSpec(shape, "float32") end
  return { output_signature = specs }
end

local function read(dataset) return function() for _ in dataset:iter() do end end end

describe("what a script's function throws", function()
  local model = flow.Sequential { flow.layers.Input { 3 }, flow.layers.Dense(2) }
  model:compile { loss = "mse", optimizer = "sgd" }
  local CASES = {
    ["a generator"] = read(Dataset.from_generator(generator, numbers {})),
    ["what makes a generator"] = read(Dataset.from_generator(throw, numbers {})),
    ["a generator without a signature"] = function() Dataset.from_generator(throw) end,
    ["a generator below other stages"] = read(Dataset.from_generator(generator, numbers {}):batch(2):prefetch(2)),
    ["a generator in interleave"] = read(Dataset.range(2):interleave(function() return Dataset.from_generator(generator, numbers {}) end)),
    ["a map"] = function() Dataset.range(3):map(throw) end,
    ["a filter"] = function() Dataset.range(3):filter(throw) end,
    ["a map of texts"] = function() Dataset.from_tensor_slices { "a", "b" }:map(throw) end,
    fit = function() model:fit(Dataset.from_generator(generator, numbers({ 3 }, { 2 })):batch(2), { verbose = 0 }) end,
    evaluate = function() model:evaluate(Dataset.from_generator(generator, numbers({ 3 }, { 2 })):batch(2), { verbose = 0 }) end,
    predict = function() model:predict(Dataset.from_generator(generator, numbers { 3 }):batch(2), { verbose = 0 }) end,
    ["a traced function"] = function() flow.fn(throw)(1) end,
    ["a variable's value"] = function() flow.Variable(throw) end,
  }
  for name, f in pairs(CASES) do
    it("comes out of " .. name, function()
      local ok, problem = pcall(f)
      assert.is_false(ok)
      assert.equal(PROBLEM, problem)
    end)
  end

  it("is forgotten with the element that failed", function()
    local calls = 0
    local dataset = Dataset.from_generator(function()
      return function()
        calls = calls + 1
        if calls == 2 then throw() end
        return calls < 5 and calls or nil
      end
    end, numbers {}):ignore_errors()
    local list = {}
    for x in dataset:iter() do list[#list + 1] = x:item() end
    assert.same({ 1, 3, 4 }, list)
  end)
end)

describe("a function of Lua's own libraries", function()
  it("that fails is named with the script's line", function()
    for what, f in pairs { ["flow.Variable"] = flow.Variable, from_generator = Dataset.from_generator } do
      local _, message = pcall(function() f(string.rep) end)
      assert.truthy(message:find(what .. ": bad argument #1", 1, true), message)
      assert.truthy(message:find "thrown_objects_spec.lua:%d+: ", message)
    end
  end)
end)

describe("a generator that is a coroutine", function()
  it("has ended when it has thrown, as in Python: what skips errors comes to an end", function()
    local function dataset()
      return flow.data.Dataset.from_generator(function()
        return coroutine.wrap(function()
          for i = 1, 5 do
            if i == 3 then error "bad" end
            coroutine.yield(flow.tensor { i })
          end
        end)
      end, { output_signature = flow.TensorSpec { 1 } })
    end
    local seen = {}
    for x in dataset():ignore_errors():iter() do
      seen[#seen + 1] = x:item()
      assert.is_true(#seen < 10)
    end
    assert.same({ 1, 2 }, seen)
    local iterator = dataset():iter()
    iterator:next()
    iterator:next()
    assert.has_error(function() iterator:next() end)
    assert.is_nil(iterator:next())
  end)
end)
