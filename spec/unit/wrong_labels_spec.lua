-- wrong_labels_spec.lua: labels that are not a class: NaN, negative, too large, between two classes. What Keras 3 with TensorFlow says of
-- them eagerly on a CPU: the loss and Embedding fail, metrics count a miss, to_categorical fails; none takes NaN for class 0.
local support = require "spec.support.init"
local flow = require "flow"
local message_of = support.message_of

local NAN = 0 / 0
local scores = flow.tensor { { 0.9, 0.05, 0.05 }, { 0.1, 0.8, 0.1 } }      -- the largest are of classes 0 and 1

local function labels(first) return flow.tensor({ first, 1 }, { dtype = "float32" }) end

describe("a label that is not a class", function()
  it("is an error of the sparse losses, in eager mode and in fit", function()
    for _, case in ipairs { { NAN, "-2147483648" }, { -1, "-1" }, { 3, "3" }, { 3e9, "2147483647" } } do
      local text = ("label %s of row 1 is outside 0..2"):format(case[2])
      local y = labels(case[1])
      for _, name in ipairs { "sparse_categorical_crossentropy", "categorical_generalized_cross_entropy" } do
        assert.matches(text, message_of(function() flow.losses[name](y, scores) end), 1, true)
      end
      local model = flow.Sequential { flow.layers.Input { 3 }, flow.layers.Dense(3) }
      model:compile { loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true }, optimizer = "sgd" }
      assert.matches(text, message_of(function() model:fit(scores, y, { verbose = 0, shuffle = false }) end), 1, true)
    end
  end)

  it("is a miss of the sparse metrics", function()
    for _, label in ipairs { NAN, -1, 3, 3e9, 0.5, -0.5 } do
      assert.same({ 0, 1 }, flow.metrics.sparse_categorical_accuracy(labels(label), scores):totable(), label)
      local whole = math.abs(label) == 0.5       -- in_top_k of TensorFlow truncates
      assert.same({ whole and 1 or 0, 1 },
        flow.metrics.sparse_top_k_categorical_accuracy(labels(label), scores, { k = 2 }):totable(), label)
      local ids = flow.tensor({ { 0, 1, 2 }, { 1, 0, 2 } }, { dtype = "int32" })
      assert.equal(whole and 1 or 0, flow.metrics.sparse_top_k_categorical_accuracy(labels(label), ids,
        { k = 2, from_sorted_ids = true }):totable()[1], label)
    end
  end)

  it("is not counted by MeanIoU", function()
    for _, label in ipairs { NAN, -1, 3 } do
      local metric = flow.metrics.MeanIoU { num_classes = 3 }
      metric:update_state(labels(label), flow.tensor { 0, 1 })
      assert.same({ { 0, 0, 0 }, { 0, 1, 0 }, { 0, 0, 0 } }, metric.total_cm:value():totable(), label)
    end
  end)

  it("is an error of to_categorical", function()
    assert.equal("flow.utils.to_categorical: a label is NaN, expected the number of a class",
      message_of(function() flow.utils.to_categorical(labels(NAN), 3) end))
    assert.equal("flow.utils.to_categorical: labels are from 0 to num_classes - 1 = 2, found 3000000000",
      message_of(function() flow.utils.to_categorical(flow.tensor({ 3e9, 1 }, { dtype = "int64" }), 3) end))
  end)

  it("is an error of Embedding", function()
    local layer = flow.layers.Embedding(3, 2)
    assert.matches("-2147483648", message_of(function() layer(labels(NAN)) end), 1, true)
  end)
end)
