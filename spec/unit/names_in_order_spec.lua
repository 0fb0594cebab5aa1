-- names_in_order_spec.lua: tables by name have one order wherever an order shows: Lua's own is another one in each process.
local flow = require "flow"
local names = require "flow.names"

-- Twenty names, given in an order that is not theirs.
local function words()
  local list = {}
  for i = 1, 20 do list[i] = ("name%02d"):format(i * 7 % 20) end
  return list
end

describe("tables by name", function()
  it("are gone through in the order of their keys: numbers, then texts", function()
    local function keys_of(t)
      local list = {}
      for key, value in names.ordered(t) do
        assert.equal(t[key], value)
        list[#list + 1] = key
      end
      return list
    end
    assert.same({ 1, 2, 3 }, keys_of { "a", "b", "c" })
    assert.same({}, keys_of {})
    assert.same({ 1, 2, 10, "10", "9", "b" }, keys_of { "x", "y", [10] = 1, ["9"] = 2, ["10"] = 3, b = 4 })
    local t, wanted = {}, words()
    for _, word in ipairs(wanted) do t[word] = #word end
    table.sort(wanted)
    assert.same(wanted, keys_of(t))
    t = { x = 0 }
    t[1] = 1                                      -- a list in the other part of the table
    assert.same({ 1, "x" }, keys_of(t))
    t = { "a", "b", "c", "d" }
    t[2], t[3], t.x, t.y = nil, nil, 1, 2         -- its # is 4, and so is the number of its entries
    assert.same({ 1, 4, "x", "y" }, keys_of(t))
  end)

  it("of numbers with holes are kept whole where a state is written", function()
    local codec = require "flow.state_codec"
    local holed = { 1, 2, 3, 4 }
    holed[2], holed[3], holed[20], holed[21] = nil, nil, 5, 6
    for _, t in ipairs { holed, { 1, 2 }, { [2] = 1 }, { [0.5] = 1, [2] = 2 }, {} } do
      assert.same(t, codec.decode(codec.encode(t)))
    end
  end)

  it("are mapped in that order by flow.keras.tree", function()
    local t, seen, wanted = {}, {}, words()
    for _, word in ipairs(wanted) do t[word] = word end
    flow.keras.tree.map_structure(function(leaf) seen[#seen + 1] = leaf end, t)
    table.sort(wanted)
    assert.same(wanted, seen)
  end)
end)

describe("flow.ctc_decode", function()
  it("has one order of paths that are equally likely: that of their labels", function()
    local paths = 40
    local decoded, scores = flow.ctc_decode(flow.zeros { 1, 4, 6 }, { 4 },
      { strategy = "beam_search", beam_width = 200, top_paths = paths, mask_index = 5 })
    local rows = decoded:reshape({ paths, -1 }):totable()
    scores = scores:reshape({ paths }):totable()
    local ties = 0
    for i = 2, paths do
      assert.is_true(scores[i - 1] >= scores[i])
      if scores[i - 1] == scores[i] then
        ties = ties + 1
        local before, after = table.concat(rows[i - 1], " "), table.concat(rows[i], " ")
        assert.is_true(before < after, before .. " is before " .. after)
      end
    end
    assert.is_true(ties > paths / 2)
  end)
end)
