-- No op of the nets that speed is measured on may fall back to the plain variant, whose only merit is to be right.
local flow = require "flow"
local nets = require "flow.cli.bench_nets"
local steps = require "flow.train.steps"

local function description(model, kind, shape, batch)
  local x = flow.zeros({ batch, unpack(shape) }, { dtype = model.inputs[1].dtype })
  local y = kind == "train" and flow.zeros({ batch }, { dtype = "int32" }) or nil
  return steps.describe(steps.get(model, kind, { x, y }, { x = 1, y = y and 1 or 0, weights = 0 }, batch))
end

-- Entries of a step. Lines of its description: "segment kind op variant shapes".
local function entries(...)
  local list = {}
  for op, variant in description(...):gmatch("%s*%d+ %l+%s+([%w_]+)%s+([%w_]+)") do list[#list + 1] = { op = op, variant = variant } end
  return list
end

local names = {}
for name in pairs(nets) do names[#names + 1] = name end
table.sort(names)

describe("the kernels of", function()
  for _, name in ipairs(names) do
    for _, kind in ipairs { "train", "predict" } do
      for _, precision in ipairs { "fast", "exact" } do
        it(("%s (%s, %s, a whole batch and one row) are never plain"):format(name, kind, precision), function()
          flow.config.set_precision(precision)
          finally(function() flow.config.set_precision("fast") end)
          local model, shape, _, batch = nets[name]()
          for _, rows in ipairs { batch, 1 } do
            local list = entries(model, kind, shape, rows)
            assert.is_true(#list >= 3)
            for _, entry in ipairs(list) do assert.are_not.equal("plain", entry.variant, entry.op) end
          end
        end)
      end
    end
  end

  it("a call that nobody wrote fast kernels for are called plain", function()
    local x = flow.ones({ 6, 6 }, { dtype = "int32" })
    assert.equal("plain", flow.profile(function() return x:matmul(x) end).rows[1].variant)
  end)

  -- 8 layers of 9 MB: their gradients in one segment would leave memory for the sums of one thread.
  it("a net of large convolutions trains by several threads", function()
    local list = { flow.layers.Input { 4, 4, 512 } }
    for i = 1, 8 do list[i + 1] = flow.layers.Conv2D(512, 3, { padding = "same", activation = "relu" }) end
    list[#list + 1] = flow.layers.GlobalAveragePooling2D()
    local model, segments = flow.Sequential(list), 0
    model:compile { optimizer = "sgd", loss = "sparse_categorical_crossentropy" }
    for slots in description(model, "train", { 4, 4, 512 }, 8):gmatch("rows: (%d+) slots") do
      segments = segments + 1
      assert.is_true(tonumber(slots) >= 4, slots .. " slots")
    end
    assert.is_true(segments >= 8)
    model:close()
  end)
end)
