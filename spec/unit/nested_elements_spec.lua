-- nested_elements_spec.lua: elements of data sets whose values have parts: lists of tensors and tables by name, in each other.

local flow = require "flow"
local support = require "spec.support.init"
local Dataset = flow.data.Dataset

local x = flow.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } }
local labels = flow.tensor { 1, 2, 3, 4 }

local function pairs_of() return Dataset.from_tensor_slices { x, labels } end

describe("elements with parts", function()
  it("are what zip makes of data sets with several values", function()
    local ds = Dataset.zip { Dataset.range(4), pairs_of() }
    local number, pair = ds:iter()()
    assert.equal(0, number:item())
    assert.same({ 1, 2 }, pair[1]:totable())
    assert.equal(1, pair[2]:item())
    assert.equal("Dataset (int64 {}, (float32 {2}, float32 {}))", tostring(ds))
    local spec = ds.element_spec
    assert.same({ 2 }, { #spec })
    assert.same({ 2 }, spec[2][1].shape)
    local deep, other = Dataset.zip { ds, pairs_of():batch(1) }:iter()()
    assert.equal(1, deep[2][2]:item())
    assert.same({ 1, 2 }, other[1].shape)
    local enumerated, first, label = pairs_of():enumerate():iter()()
    assert.same({ 0, { 1, 2 }, 1 }, { enumerated:item(), first:totable(), label:item() })
  end)

  it("print as what they hold", function()
    local named = Dataset.from_tensor_slices { { age = { 1, 2 }, job = { "a", "b" } }, { 0, 1 } }:iter()()
    assert.equal('{ age = Tensor float32 {} cpu\n1., job = "a" }', tostring(named))
    assert.truthy(tostring((Dataset.zip { pairs_of(), pairs_of() }:iter()())):find("^{ Tensor float32 {2} cpu"))
  end)

  it("are given to functions of map and filter, and returned by them", function()
    local ds = Dataset.zip { pairs_of(), pairs_of() }:map(function(one, other)
      return { one[1] + other[1], { sum = one[2] + other[2], rest = { one[1], other[2] } } }, one[2]
    end)
    for value, label in ds:filter(function(value) return value[2].sum:gt(4) end):batch(2):take(1):iter() do
      assert.same({ { 10, 12 }, { 14, 16 } }, value[1]:totable())
      assert.same({ 6, 8 }, value[2].sum:totable())
      assert.same({ 3, 4 }, value[2].rest[2]:totable())
      assert.same({ 3, 4 }, label:totable())
    end
    local shuffled = Dataset.zip { pairs_of(), pairs_of() }:shuffle(4):repeat_(2):skip(1):prefetch(1)
    local pair = shuffled:iter()()
    assert.equal(2, #pair)
  end)

  it("come from generators, and are equal to others only with the same parts", function()
    local function generator()
      local done = false
      return function()
        if not done then
          done = true
          return { x, { a = labels } }, labels
        end
      end
    end
    local sliced, label = Dataset.from_tensor_slices { { x, { labels, labels } }, labels }:skip(1):iter()()
    assert.same({ { 3, 4 }, 2, 2 }, { sliced[1]:totable(), sliced[2][1]:item(), label:item() })
    local value = Dataset.from_generator(generator):iter()()
    assert.same({ 1, 2, 3, 4 }, value[2].a:totable())
    local message = support.message_of(function()
      Dataset.sample_from_datasets { Dataset.zip { Dataset.range(3), Dataset.range(3) }, Dataset.zip { Dataset.range(3),
        Dataset.from_tensor_slices { labels, labels } } }
    end)
    assert.truthy(message)
  end)

  it("are what steps of a model's own get", function()
    local seen
    local Own = flow.Model:extend "Own"
    function Own:init() self.dense = flow.layers.Dense(1) end
    function Own:train_step(data)
      local images, rays = unpack(data)
      seen = { #rays, rays[1].shape[2] }
      local tape = flow.GradientTape()
      local loss = tape:record(function() return (self.dense(images) - flow.expand_dims(rays[2], -1)):square():mean() end)
      self.optimizer:apply_gradients(tape:gradient(loss, self.trainable_variables), self.trainable_variables)
      return { loss = loss }
    end
    local Named = Own:extend "Named"
    function Named:train_step(data)
      seen = data.image.shape[2]
      return { loss = self.dense(data.image):square():mean() }
    end
    for _, eagerly in ipairs { false, true } do
      local own = Own()
      own:compile { optimizer = "sgd", run_eagerly = eagerly }
      own:fit(Dataset.zip { Dataset.from_tensor_slices(x), pairs_of() }:batch(2), { verbose = 0 })
      assert.same({ 2, 2 }, seen)
      local named = Named()
      named:compile { optimizer = "sgd", run_eagerly = eagerly }
      named:fit(Dataset.from_tensor_slices { image = x }:batch(2), { verbose = 0 })
      assert.equal(2, seen)
    end
  end)

  it("are inputs and targets of a graph of layers, side by side", function()
    local a, b = flow.Input { 2 }, flow.Input { 2 }
    local model = flow.Model { inputs = { a, b }, outputs = flow.layers.Dense(1)(flow.layers.Add()({ a, b })) }
    model:compile { optimizer = "sgd", loss = "mse" }
    local ds = Dataset.from_tensor_slices { x, x, labels }:map(function(one, other, label) return { one, other }, label end)
    local direct = Dataset.from_tensor_slices { x, x, labels }
    assert.equal(model:evaluate(direct:batch(2), { verbose = 0 }).loss, model:evaluate(ds:batch(2), { verbose = 0 }).loss)
    model:fit(ds:batch(2), { epochs = 1, verbose = 0 })
    local zipped = Dataset.zip { Dataset.from_tensor_slices { x, x }, Dataset.from_tensor_slices(labels) }
    assert.equal(model:evaluate(direct:batch(2), { verbose = 0 }).loss, model:evaluate(zipped:batch(2), { verbose = 0 }).loss)
  end)

  it("are in the folder that save writes", function()
    local function first(dataset) return dataset:iter()() end
    local path = support.folder() .. "/saved"
    Dataset.zip { Dataset.range(3), Dataset.zip { Dataset.range(5, 8), Dataset.range(7, 10) } }:save(path)
    local number, pair = first(Dataset.load(path))
    assert.same({ 0, 5, 7 }, { number:item(), pair[1]:item(), pair[2]:item() })
    Dataset.from_tensor_slices { a = x, b = { c = x, d = labels } }:save(path .. "2")
    local named = first(Dataset.load(path .. "2"))
    assert.same({ 2, 2 }, { named.a.shape[1], named.b.c.shape[1] })
    assert.equal(0, named.b.d.rank)
  end)

  it("are what zip is given: data sets in lists and tables by name, as deep as may be", function()
    local a, b = Dataset.range(3), Dataset.range(10, 13)
    local named = Dataset.zip { a = a, b = b }:batch(2):iter()()
    assert.same({ { 0, 1 }, { 10, 11 } }, { named.a:totable(), named.b:totable() })
    local first, y = Dataset.zip({ { u = a, v = { a, b } }, b }):iter()()
    assert.same({ 0, 0, 10, 10 }, { first.u:item(), first.v[1]:item(), first.v[2]:item(), y:item() })
    local pair = Dataset.zip { x = Dataset.zip { a, b }, y = { z = b } }:map(function(t) return t.x[2] + t.y.z, t.x[1] end)
    assert.equal(20, pair:iter()():item())
    assert.equal("zip: expected a Dataset, got the number 3", select(2, pcall(Dataset.zip, { a = 3 })):match("zip:.*"))
    assert.truthy(select(2, pcall(Dataset.zip, a, nil)):find("argument 2 is nil", 1, true))
  end)
end)
