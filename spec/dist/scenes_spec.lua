-- scenes_spec.lua: two workers whose scripts do not do the same, as users write them: one has less data, saves alone, raises, ends, or
-- calls something else. What can go on does; else each worker says in one sentence what it was, and the launcher ends with a failure.
local support = require "spec.support.init"
local clusters = require "spec.support.clusters"

local BEGIN = [[
  local flow = require "flow"
  local me = tonumber(os.getenv("TF_CONFIG"):match '"index":(%d+)')
  local strategy = flow.distribute.MultiWorkerMirroredStrategy()
  local model = strategy.scope(function()
    local made = flow.Sequential { flow.layers.Input { 4 }, flow.layers.Dense(1, { kernel_initializer = "ones" }) }
    made:compile { optimizer = "sgd", loss = "mse" }
    return made
  end)
  local x, y = flow.random.normal({ 64, 4 }, { seed = 1 }), flow.random.normal({ 64, 1 }, { seed = 2 })
  -- Data of each worker's own, in batches that a generator makes.
  local function batches(count)
    local data = flow.data.Dataset.from_generator(function()
      local made = 0
      return function()
        made = made + 1
        if made <= count then return flow.ones { 8, 4 }, flow.ones { 8, 1 } end
      end
    end, { output_signature = { flow.TensorSpec({ 8, 4 }), flow.TensorSpec({ 8, 1 }) } })
    return data:with_options { auto_shard_policy = "OFF" }
  end
  local uneven = batches(me == 1 and 3 or 6)
]]

local function run(script, arguments)
  return clusters.launch(script, { begin = BEGIN, launch = "", arguments = arguments })
end

describe("workers with different numbers of batches", function()
  for name, case in pairs {
    fit = { 'print("=", ("%.6f"):format(model:fit(uneven, { epochs = 2, verbose = 0 }).history.loss[2]))', nil },
    evaluate = { 'print("=", ("%.6f"):format(model:evaluate(uneven, { verbose = 0, return_dict = true }).loss))', "9.000000" },
    predict = { 'print("=", model:predict(uneven:map(function(a) return a end), { verbose = 0 }).shape[1])', "72" },
    ["the script's own loop"] = { [[
      local rows = 0
      for a in strategy:experimental_distribute_dataset(uneven):iter() do rows = rows + a.shape[1] end
      print("=", rows)]], nil },
  } do
    it("come to an end together in " .. name, function()
      local said, output, code = run(case[1])
      assert.equal(0, code, output)
      assert.equal(1, #said[0], output)
      if name ~= "the script's own loop" then assert.same(said[0], said[1], output) end
      if case[2] then assert.equal(case[2], said[0][1], output) end
    end)
  end
end)

describe("a global batch of fewer rows than workers", function()
  it("leaves no row out", function()
    local said, output, code = run [[
      local rows = me == 1 and 0 or 5      -- of the chief's alone: every round in which it had no part was the last one
      local data = flow.data.Dataset.from_tensor_slices({ flow.ones { 5, 4 }, flow.ones { 5, 1 } }):take(rows):batch(1)
        :with_options { auto_shard_policy = "OFF" }
      print("=", model:predict(data:map(function(a) return a end), { verbose = 0 }).shape[1],
        ("%.6f"):format(model:evaluate(data, { verbose = 0, return_dict = true }).loss))
    ]]
    assert.equal(0, code, output)
    assert.equal("5\t9.000000", said[0][1], output)
    assert.same(said[0], said[1], output)
  end)
end)

describe("a worker that saves what the chief does not", function()
  it("does so by itself, when the chief has gone on, and when it has ended", function()
    local folder = support.folder()
    local said, output, code = run([[
      model:fit(x, y, { verbose = 0 })
      if me == 1 then model:save_weights(arg[1] .. "/one.weights.h5") end
      model:fit(x, y, { verbose = 0 })
      if me == 1 then model:save(arg[1] .. "/one.keras") end
      print("=", "done")]], folder)
    assert.equal(0, code, output)
    assert.same({ [0] = { "done" }, { "done" } }, said, output)
    assert.is_true(support.exists(folder .. "/one.weights.h5"), output)
    assert.is_true(support.exists(folder .. "/one.keras"), output)
  end)
end)

describe("workers of which one", function()
  for name, case in pairs {
    ["raises in a callback"] = { [[model:fit(x, y, { verbose = 0, callbacks = { flow.callbacks.LambdaCallback {
      on_train_batch_end = function() if me == 1 then error "my callback is wrong" end end } } })]],
      "worker:1 [%d.:]+ reports at step %d: [^\n]*my callback is wrong", "my callback is wrong" },
    ["evaluates where the other one trains"] = {
      'if me == 1 then model:evaluate(x, y, { verbose = 0 }) else model:fit(x, y, { verbose = 0 }) end',
      "worker:0 [%d.:]+ broadcasts 8 bytes, worker:1 [%d.:]+ begins a step: do all workers run the same program?",
      "worker:0 [%d.:]+ broadcasts 8 bytes, worker:1 [%d.:]+ begins a step: do all workers run the same program?" },
  } do
    it(name .. " end, and both say why", function()
      local _, output, code = run(case[1])
      assert.equal(1, code, output)
      for worker = 0, 1 do
        assert.truthy(output:find(("[worker:%d] flowlua: "):format(worker), 1, true), output)
        assert.truthy(output:match(("%%[worker:%d%%] flowlua: ([^\n]*)"):format(worker)):find(case[2 + worker]), output)
      end
    end)
  end
end)
