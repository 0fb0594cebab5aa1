-- data_spec.lua: orders of elements against tf.data's (generate_data.py).
require "spec.support.init"
local flow = require "flow"
local random = require "flow.tensor.random"
local Dataset = flow.data.Dataset

local cases = {}
for _, case in ipairs(require "spec.golden.orders") do
  cases[case.kind] = cases[case.kind] or {}
  table.insert(cases[case.kind], case)
end

local function pass(dataset)
  local list = {}
  for x in dataset:iter() do
    list[#list + 1] = x.rank == 0 and x:item() or x:totable()
  end
  return list
end

local function check(case, dataset)
  for _, order in ipairs(case.orders) do assert.same(order, pass(dataset)) end
end

describe("tf.data's order", function()
  local before = random.global_seed
  after_each(function() random.global_seed = before end)

  it("of shuffle, for every seed, buffer and pass", function()
    for _, case in ipairs(cases.shuffle) do
      random.global_seed = case.global_seed or false
      local dataset = Dataset.range(case.n):shuffle(case.buffer, { seed = case.seed, reshuffle_each_iteration = case.reshuffle })
      if case.epochs > 1 then dataset = dataset:repeat_(case.epochs) end
      check(case, dataset)
    end
    assert.is_true(#cases.shuffle > 20)
  end)

  it("of shard", function()
    for _, case in ipairs(cases.shard) do check(case, Dataset.range(case.n):shard(case.count, case.index)) end
  end)

  it("of interleave", function()
    for _, case in ipairs(cases.interleave) do
      for _, parallel in ipairs { false, 2 } do
        check(case, Dataset.range(case.n):interleave(function(i)
          local n = i:item()
          return Dataset.range(10 * n, 10 * n + n + 1)
        end, { cycle_length = case.cycle, block_length = case.block, num_parallel_calls = parallel or nil }))
      end
    end
  end)

  it("of rebatch", function()
    for _, case in ipairs(cases.rebatch) do
      check(case, Dataset.range(case.n):batch(case.batch):rebatch(#case.sizes > 1 and case.sizes or case.sizes[1]))
    end
  end)
end)
