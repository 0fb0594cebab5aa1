-- plot_spec.lua: flow.plot.lines, histogram and images: what a user of Keras does with matplotlib, as files and in the terminal.
local support = require "spec.support.init"
local flow = require "flow"

local folder
local function path(name) return folder .. "/" .. name end
local function svg(name) return support.read(path(name)) end

-- The pixel of a PNG as "r g b"; two pixels stand for a unit of the drawing.
local function pixel(picture, x, y)
  return table.concat(picture[y + 1][x + 1]:totable(), " ")
end

local function with_sink(f)
  local sink, said = flow.log.sink, {}
  flow.log.sink = function(_, text) said[#said + 1] = text end
  local result = f()
  flow.log.sink = sink
  return result
end

describe("flow.plot", function()
  setup(function() folder = support.folder() end)
  teardown(function() os.execute("rm -rf " .. folder) end)

  it("draws curves by their names, validation after training, dots where there are few points", function()
    flow.plot.lines({ val_accuracy = { 0.4, 0.7, 0.6 }, accuracy = flow.tensor { 0.5, 0.8, 0.9 } }, path "a.svg",
      { title = "first <model>", xlabel = "epoch", ylabel = "share" })
    local text = svg "a.svg"
    assert.truthy(text:find("first &lt;model&gt;", 1, true))
    assert.truthy(text:find(">accuracy<.*>0.9<.*>val_accuracy<.*>0.6<"))
    assert.truthy(text:find("<title>val_accuracy: 0.7 in epoch 2</title>", 1, true))
    assert.equal(2, support.count(text, "<polyline"))
    assert.equal(6, support.count(text, "<circle"))
    assert.truthy(text:find('rotate%(%-90[^>]*>share<'))
    flow.plot.lines({ { 1, 2 }, { 2, 1 } }, path "b.svg", { x = { 0.25, 0.75 }, labels = { "up", "down" } })
    assert.truthy(svg("b.svg"):find("<title>down: 1 in x 0.75</title>", 1, true))
  end)

  it("draws the same as pixels", function()
    flow.plot.lines({ 0, 1 }, path "a.png", { width = 240, height = 200 })
    local picture = flow.image.load(path "a.png")
    assert.same({ 400, 480, 3 }, { picture.shape[1], picture.shape[2], picture.shape[3] })
    -- the curve goes from the lower left corner of the frame (64, 154) to the upper right one (222, 58)
    assert.equal("31 111 180", pixel(picture, 2 * 143, 2 * 106))
    assert.equal("255 255 255", pixel(picture, 2 * 143, 2 * 106 + 30))
    assert.equal("31 111 180", pixel(picture, 2 * 64, 2 * 154 - 1))
  end)

  it("counts values as NumPy does", function()
    local values = flow.tensor { 0, 1, 1, 2, 2, 2, 2, 4, 0 / 0 }
    flow.plot.histogram(values, path "h.svg", { bins = 4 })
    local counts = {}
    for count in svg("h.svg"):gmatch("<title>[%d.]+ to [%d.]+: (%d+)</title>") do counts[#counts + 1] = tonumber(count) end
    assert.same({ 1, 2, 4, 1 }, counts)      -- np.histogram([0, 1, 1, 2, 2, 2, 2, 4], 4)[0]
    flow.plot.histogram(values, path "h.png")
    assert.truthy(support.read(path "h.png"):find("^\137PNG"))
    local text = with_sink(function() return flow.plot.histogram({ 0, 1, 1 }, { bins = 2 }) end)
    assert.truthy(text:find("^  0 to 0.5 [^\n]* 1\n0.5 to   1 [^\n]* 2\n$"), text)
  end)

  it("shows pictures with their labels in a grid", function()
    local images = flow.zeros({ 4, 28, 28, 1 }, { dtype = "uint8" })
    images = flow.concat({ images, flow.ones({ 1, 28, 28, 1 }, { dtype = "uint8" }) * 200 }, 1)
    flow.plot.images(images, path "i.png", { titles = flow.tensor({ 0, 1, 0, 1, 1 }, { dtype = "int32" }), class_names = { "cat", "dog" } })
    local picture = flow.image.load(path "i.png")
    -- 3 columns of 28 * 5 + 12 units, 2 rows of 28 * 5 + 12 + 22, and a margin
    assert.same({ 2 * (2 * 174 + 12), 2 * (3 * 152 + 12) }, { picture.shape[1], picture.shape[2] })
    assert.equal("0 0 0", pixel(picture, 2 * (12 + 70), 2 * (12 + 22 + 70)))
    assert.equal("200 200 200", pixel(picture, 2 * (12 + 152 + 70), 2 * (12 + 174 + 22 + 70)))
    assert.equal("255 255 255", pixel(picture, 2 * (12 + 2 * 152 + 70), 2 * (12 + 174 + 22 + 70)))
    flow.plot.images(images, path "i.svg", { titles = { "a", "b", "c", "d", "e" }, max_images = 2, title = "two" })
    local text = svg "i.svg"
    assert.equal(2, support.count(text, "<image "))
    assert.truthy(text:find(">a</text>.*>b</text>") and not text:find(">c</text>"))
    assert.truthy(text:find("data:image/bmp;base64,Qk", 1, true))
  end)

  it("takes floats of every usual range, colours and single pictures", function()
    for _, case in ipairs { { 0.5, "128 128 128" }, { 127.6, "128 128 128" } } do
      flow.plot.images(flow.full({ 30, 30 }, case[1]), path "g.png")
      assert.equal(case[2], pixel(flow.image.load(path "g.png"), 100, 100))
    end
    local halves = flow.concat({ flow.full({ 15, 30, 3 }, -1), flow.full({ 15, 30, 3 }, 1) }, 1)
    flow.plot.images(halves, path "g.png")
    local picture = flow.image.load(path "g.png")
    assert.equal("0 0 0", pixel(picture, 100, 50))
    assert.equal("255 255 255", pixel(picture, 100, 230))
    flow.plot.images({ flow.full({ 30, 30, 3 }, 1):to("uint8") * 9, flow.zeros { 20, 10 } }, path "g.png", { columns = 1 })
    assert.equal("9 9 9", pixel(flow.image.load(path "g.png"), 100, 100))
    local text = with_sink(function() return flow.plot.images(halves, { titles = { "halves" } }) end)
    assert.truthy(text:find("^halves\n\n") and text:find("\n@@@@@@@@", 1, true), text)
  end)

  it("says what it does not take", function()
    for message, f in pairs {
      ['flow.plot.lines: "a.jpg": pictures are written as .svg or .png files'] = function() flow.plot.lines({ 1 }, "a.jpg") end,
      ["flow.plot.lines: loss[2] is the string \"x\", expected a number"] = function()
        flow.plot.lines({ loss = { 1, "x" } }, path "a.svg")
      end,
      ["flow.plot.lines: loss has 2 values, x has 3"] = function()
        flow.plot.lines({ loss = { 1, 2 } }, path "a.svg", { x = { 1, 2, 3 } })
      end,
      ["flow.plot.lines: there is nothing to plot: no curve was given"] = function() flow.plot.lines({}, path "a.svg") end,
      ["flow.plot.histogram: there is nothing to plot: no finite value was given"] = function() flow.plot.histogram({ 0 / 0 }) end,
      ["flow.plot.images: 1 titles for 2 pictures"] = function()
        flow.plot.images(flow.zeros { 2, 8, 8 }, path "a.svg", { titles = { 1 } })
      end,
      ["flow.plot.images: a picture is {height, width} or {height, width, 1, 3 or 4}, got {8, 8, 2}"] = function()
        flow.plot.images(flow.zeros { 2, 8, 8, 2 }, path "a.svg")
      end,
    } do
      assert.equal(message, support.message_of(f))
    end
  end)
end)
