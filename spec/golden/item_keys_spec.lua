-- item_keys_spec.lua: parts of a tensor as Keras' files have them, x[:, ::-1] or x[..., 0], are what Keras computes: opened by Lua and by
-- C, and written again. item_keys.py makes the model and the values.
local support = require "spec.support.init"
local flow = require "flow"

local folder = support.root .. "spec/golden/"
local COUNT = 15

local function expect_parts(model, what)
  local found = model:predict(flow.load_npz(folder .. "item_keys.npz", "x"), { verbose = 0 })
  for i = 1, COUNT do
    local y = flow.load_npz(folder .. "item_keys.npz", "y" .. i)
    assert.same(y.shape, found[i].shape, ("%s, output %d"):format(what, i))
    assert.same(y:totable(), found[i]:totable(), ("%s, output %d"):format(what, i))
  end
end

describe("parts of a tensor in a file of Keras", function()
  local temporary = support.file("model.keras", "")

  it("are opened by Lua, written again and opened", function()
    local model = flow.models.load_model(folder .. "item_keys.keras")
    expect_parts(model, "opened")
    model:save(temporary)
    expect_parts(flow.models.load_model(temporary), "written again")
    expect_parts(flow.models.shared(temporary), "written again, by C")
  end)

  it("are opened by C", function() expect_parts(flow.models.shared(folder .. "item_keys.keras"), "by C") end)
end)
