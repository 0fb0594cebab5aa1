-- gather_sum_spec.lua: sums over gathered rows read them in their table (core/plan/passes/fuse_gather.c).
local flow = require "flow"
local backend = require "spec.support.backend"
local emulated = require "spec.support.emulated"
local steps = require "flow.train.steps"
local layers = flow.layers

local WORDS = 50

local function words(shape, dtype)
  return flow.random.uniform(shape, { maxval = WORDS, dtype = "int32", seed = 3 }):to(dtype or "int32")
end

local function gather(rows, indices) return backend.apply("gather", { rows, indices })[1] end

local function table_of(...)
  return flow.random.normal({ WORDS, ... }, { seed = 4 })
end

--- The op in a plan that runs f on indices; the results of the plan and of ops on their own.
local function both(f, indices)
  local traced = flow.fn(f)
  local result = traced(indices)
  return traced:describe(), result, f(indices)
end

local function same(a, b)
  assert.same(a.shape, b.shape)
  assert.same(a:flatten():totable(), b:flatten():totable())
end

describe("a sum over gathered rows", function()
  it("has the bits of the gather and the sum, for any width, length and dtype of indices", function()
    for _, width in ipairs { 64, 67, 100, 128, 513, 1100 } do
      for _, length in ipairs { 1, 2, 3, 4, 7, 33, 200 } do
        local rows = table_of(width)
        for _, dtype in ipairs(length == 7 and { "int32", "int64", "uint8" } or { "int32" }) do
          local text, fused, apart = both(function(i) return flow.sum(gather(rows, i), 2) end, words({ 5, length }, dtype))
          assert.is_truthy(text:find("gather_sum", 1, true), text)
          same(fused, apart)
        end
      end
    end
  end)

  it("takes indices of several axes, rows of several, and none at all", function()
    local rows = table_of(8, 16)
    local text, fused, apart = both(function(i) return flow.sum(gather(rows, i), 3) end, words { 4, 3, 9 })
    assert.is_truthy(text:find("gather_sum", 1, true), text)
    assert.same({ 4, 3, 8, 16 }, fused.shape)
    same(fused, apart)
    local _, none = both(function(i) return flow.sum(gather(rows, i), 2) end, flow.zeros({ 2, 0 }, { dtype = "int32" }))
    same(none, flow.zeros { 2, 8, 16 })
  end)

  it("stays two ops where something else reads the rows, or the sum is over other axes", function()
    local rows, short = table_of(64), table_of(8)
    for _, f in ipairs {
      function(i) local x = gather(rows, i) return flow.sum(x, 2) + x:max(2) end,
      function(i) return flow.sum(gather(rows, i), 3) end,
      function(i) return flow.sum(gather(rows, i), { 2, 3 }) end,
      function(i) return flow.sum(gather(rows, i), 2, true) end,
      function(i) return flow.sum(gather(short, i), 2) end,
    } do
      local text, fused, apart = both(f, words { 5, 6 })
      assert.is_nil(text:find("gather_sum", 1, true), text)
      same(fused, apart)
    end
  end)

  it("names an index that is not in the table, and its row", function()
    local rows = table_of(64)
    local f = flow.fn(function(i) return flow.sum(gather(rows, i), 2) end)
    for _, wrong in ipairs { WORDS, -1 } do
      local indices = flow.tensor({ { 1, 2 }, { 3, wrong } }, { dtype = "int32" })
      local ok, message = pcall(f, indices)
      assert.is_false(ok)
      assert.is_truthy(tostring(message):find(("index %d of row 2 is outside 0..49"):format(wrong), 1, true), message)
    end
  end)

  it("is the mean of embedded words, in a prediction and in a training step", function()
    flow.random.set_seed(5)
    local input = flow.Input({ 12 }, { dtype = "int32" })
    local mean = layers.GlobalAveragePooling1D()(layers.Embedding(WORDS, 64)(input))
    local model = flow.Model { inputs = input, outputs = layers.Dense(2)(mean) }
    model:compile { optimizer = flow.optimizers.SGD(0.5), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
    local x, y = words { 6, 12 }, flow.tensor({ 0, 1, 1, 0, 1, 0 }, { dtype = "int32" })
    local before = model(x)
    same(model:predict(x, { verbose = 0 }), before)
    assert.is_truthy(steps.describe(model._steps[#model._steps]):find("gather_sum", 1, true))
    local list, expected, tape = model.trainable_variables, {}, flow.GradientTape()
    local loss = tape:record(function() return flow.losses.SparseCategoricalCrossentropy { from_logits = true }(y, model(x)) end)
    for i, gradient in ipairs(tape:gradient(loss, list)) do expected[i] = list[i]:value() - 0.5 * gradient end
    model:train_on_batch(x, y)
    assert.is_truthy(steps.describe(model._steps[#model._steps]):find("gather_sum", 1, true))
    for i, variable in ipairs(list) do backend.near(expected[i], variable:value(), 1e-6, variable.name) end
  end)

  it("stays two ops on a GPU", function()
    if emulated.missing() then
      pending(emulated.missing())
      return
    end
    local text = flow.device("gpu:0", function()
      local rows = table_of(64)
      return (both(function(i) return flow.sum(gather(rows, i), 2) end, words { 5, 6 }))
    end)
    assert.is_nil(text:find("gather_sum", 1, true), text)
  end)
end)
