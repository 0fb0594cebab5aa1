-- plot_edges_spec.lua: pictures of values that are hardly different, very large, not finite or not there, and of options that are wrong.
local support = require "spec.support.init"
local flow = require "flow"
local scale = require "flow.plot.scale"
local series = require "flow.plot.series"
local images = require "flow.plot.images"
local svg = require "flow.plot.svg"

local folder
local function path(name) return folder .. "/" .. name end

local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return tostring(message)
end

-- Raises where an axis has too many ticks, so that a loop without end is found soon.
local function bounded(f)
  local steps = 0
  debug.sethook(function()
    steps = steps + 1
    if steps > 200 then error("no end", 0) end
  end, "", 10000)
  jit.off()
  local ok, result = pcall(f)
  jit.on()
  debug.sethook()
  assert.is_true(ok, tostring(result))
  return result
end

describe("an axis", function()
  it("of values that hardly differ ends, and has them in it", function()
    for _, case in ipairs { { 1, 1 + 2 ^ -52 }, { -3, -3 + 2 ^ -50 }, { 1e17, 1e17 + 16 }, { 0, 5e-324 }, { 5e-324, 5e-324 },
                            { -1e300, 1e300 },
                            { 0.69314718055994529, 0.69314718055994540 } } do
      local axis = bounded(function() return scale.linear(case[1], case[2], 7) end)
      assert.is_true(axis.low < axis.high and axis.low <= case[1] and axis.high >= case[2])
      assert.is_true(#axis.ticks >= 1 and #axis.ticks < 20)
      for _, value in ipairs(case) do
        local share = scale.share(axis, value)
        assert.is_true(share >= 0 and share <= 1, ("%.17g"):format(share))
      end
    end
  end)

  it("of powers of ten begins at 1e-300", function()
    local axis = scale.logarithmic(5e-324, 1, 5)
    assert.equal(1e-300, axis.low)
    assert.equal(0, scale.share(axis, 5e-324))
    assert.equal(1, scale.share(axis, 1))
  end)
end)

describe("flow.plot", function()
  setup(function() folder = support.folder() end)
  teardown(function() os.execute("rm -rf " .. folder) end)

  it("draws curves of hardly different and of very large values", function()
    for i, values in ipairs { { 1, 1 + 2 ^ -52, 1 }, { -1.7e308, 1, 1.7e308 }, { 0, 5e-324 }, { 1e17, 1e17 + 32 } } do
      bounded(function() flow.plot.lines(values, path(i .. ".svg")) end)
      local text = support.read(path(i .. ".svg"))
      assert.is_nil(text:find('"%-?nan') or text:find('"%-?inf'), text)
    end
    bounded(function() flow.plot.lines({ 1, 2 }, path "x.svg", { x = { 1e17, 1e17 + 32 } }) end)
    assert.truthy(message_of(flow.plot.lines, { 1, 2 }, path "x.svg", { x = { 1, 0 / 0 } }):find("x[2] is nan, expected a finite number", 1,
      true))
    assert.truthy(message_of(flow.plot.lines, { 1, 2 }, { height = math.huge }):find("height is a number from 3 to 1000", 1, true))
  end)

  it("takes a history by its lists, names as a list, and leaves options unchanged", function()
    local options = { title = "loss", metrics = { "loss" } }
    flow.plot.history({ history = { loss = { 2, 1 } } }, path "h.svg", options)
    assert.same({ title = "loss", metrics = { "loss" } }, options)
    assert.truthy(message_of(flow.plot.history, { history = { loss = { 2, 1 } } }, path "h.svg", { metrics = "loss" })
      :find('metrics is a list of names, got the string "loss"', 1, true))
  end)

  it("counts values at the edges of bins as NumPy does", function()
    local function counts(values, bins)
      local list = {}
      for i, bar in ipairs(series.histogram("h", values, bins, {})[1].bars) do list[i] = bar.value end
      return list
    end
    -- numpy.histogram([0, 0.29, 0.3, 0.7, 1], 10)[0]: 3 * 0.1 is above 0.3, 7 * 0.1 above 0.7
    assert.same({ 1, 0, 2, 0, 0, 0, 1, 0, 0, 1 }, counts({ 0, 0.29, 0.3, 0.7, 1 }, 10))
    local hundred = counts({ 0, 0.29, 1 }, 100)      -- 0.29 * 100 is below 29
    assert.same({ 1, 0, 1, 1 }, { hundred[1], hundred[29], hundred[30], hundred[100] })
    assert.same({ 0, 3 }, counts({ 1e17, 1e17, 1e17 }, 2))
  end)

  it("draws pictures with NaN, of true and false, and says when there are no pixels", function()
    local function read(t) return images.read("p", t, { max_images = 1 }).pictures[1]:totable() end
    local nan = read(flow.tensor { { 0 / 0, 0.5 }, { 1, 0.25 } })
    assert.same({ 0, 128, 255, 64 }, { nan[1][1][1], nan[1][2][1], nan[2][1][1], nan[2][2][1] })
    local mask = read(flow.tensor({ { 0, 1 }, { 1, 0 } }):to "bool")
    assert.same({ 0, 255, 255, 0 }, { mask[1][1][1], mask[1][2][1], mask[2][1][1], mask[2][2][1] })
    assert.truthy(message_of(flow.plot.images, flow.zeros { 1, 0, 2, 3 }, path "e.svg"):find("a picture has no pixels: {0, 2, 3}", 1, true))
  end)

  it("writes titles by their characters below pictures in a terminal", function()
    local shown = images.read("p", flow.zeros { 1, 4, 4 }, { max_images = 1, titles = { ("ä"):rep(80) } })
    local first = images.text(shown, 40):match "^[^\n]*"
    assert.equal(("ä"):rep(40), first)
  end)

  it("draws confusion matrices of negative weights and NaN", function()
    for _, weights in ipairs { { -1, 2 }, { 0 / 0, 2 } } do
      flow.plot.confusion_matrix({ 0, 1 }, { 0, 1 }, { file = path "c.png", weights = weights })
      flow.plot.confusion_matrix({ 0, 1 }, { 0, 1 }, { file = path "c.svg", weights = weights })
      for color in support.read(path "c.svg"):gmatch 'fill="#(%w*)"' do assert.truthy(color:find "^%x%x%x%x%x%x$", color) end
    end
    assert.truthy(message_of(flow.plot.confusion_matrix, { 0 }, { 0 }, { file = path "c.svg", title = 5 })
      :find("title is a string, got the number 5", 1, true))
  end)

  it("cuts long texts as before, at once", function()
    local text = svg.fit_text(("il"):rep(50000), 12, 100)
    assert.truthy(text:find("^il") and svg.text_width(text, 12) <= 100 and svg.text_width(text .. "i", 12) > 96, text)
    assert.equal("…", svg.fit_text("mmmm", 12, 5))
    assert.equal("abc", svg.fit_text("abc", 12, 100))
  end)
end)
