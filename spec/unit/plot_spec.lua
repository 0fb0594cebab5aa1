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

  it("draws graphs of models and confusion matrices in pixels, too", function()
    local model = flow.Sequential { flow.layers.Input { 4 }, flow.layers.Dense(2) }
    model:plot(path "m.png")
    local picture = flow.image.load(path "m.png")
    local middle = math.floor(picture.shape[2] / 2)
    assert.equal("255 255 255", pixel(picture, 2, 2))
    assert.equal("255 255 255", pixel(picture, picture.shape[2] - 1, picture.shape[1] - 1))
    local edges, fills = 0, 0
    for y = 0, picture.shape[1] - 1 do
      local found = pixel(picture, middle, y)
      if found == "138 148 158" then edges = edges + 1 end      -- the arrow from the input to the layer
      if found == "253 241 231" then fills = fills + 1 end      -- the box of a dense layer
    end
    assert.is_true(edges > 20 and fills > 10, ("%d pixels of an edge, %d of a box"):format(edges, fills))
    flow.plot.confusion_matrix(flow.tensor { 0, 1, 1 }, flow.tensor { 0, 1, 0 }, { file = path "c.png" })
    assert.same({ 2 * (16 + 2 * 44 + 24 + 34), 2 * 260 }, { unpack(flow.image.load(path "c.png").shape, 1, 2) })
  end)

  it("shows filters, and what layers make of a picture", function()
    local conv = flow.layers.Conv2D(2, 2, { kernel_initializer = flow.initializers.Constant(0) })
    local model = flow.Sequential { flow.layers.Input { 4, 4, 3 }, conv, flow.layers.Flatten(), flow.layers.Dense(1) }
    conv.kernel:assign(flow.tensor { 1, -1, 0, 0, -1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }:reshape { 2, 2, 3, 2 })
    flow.plot.filters(conv, path "f.png", { columns = 2 })
    local picture = flow.image.load(path "f.png")
    -- pictures of 2 pixels, 60 units each, after a margin of 12; each unit is two pixels
    assert.equal("255 128 0", pixel(picture, 40, 40))
    assert.equal("0 128 255", pixel(picture, 40 + 2 * 132, 40))
    assert.equal("128 128 128", pixel(picture, 40, 40 + 2 * 100))
    local text = with_sink(function()
      return flow.plot.feature_maps(model, flow.tensor { 1, 0, 0 }:reshape { 1, 1, 3 } * flow.eye(4):reshape { 4, 4, 1 })
    end)
    assert.truthy(text:find("conv2d", 1, true), text)
    assert.matches("Dense .* has no filters", support.message_of(function() flow.plot.filters(model.layers[3]) end))
    assert.matches("what Flatten .* gives is not {rows, height, width, channels}",
      support.message_of(function() flow.plot.feature_maps(model, flow.zeros { 4, 4, 3 }, { layer = model.layers[2] }) end))
    assert.matches("the image is {height, width, channels}, got {4}",
      support.message_of(function() flow.plot.feature_maps(model, flow.zeros { 4 }) end))
  end)

  it("shows pictures in terminals that have kitty's protocol", function()
    local terminal = require "spec.support.terminal"
    local script = path "show.lua"
    local drawing = 'require("flow").plot.histogram(require("flow").tensor { 1, 2, 2, 3 }, %s)'
    support.write(script, drawing:format "{ bins = 3 }")
    flow.plot.histogram(flow.tensor { 1, 2, 2, 3 }, path "h.png", { bins = 3 })
    local function shown(environment)
      environment.FLOWLUA_PATH = support.root .. "lua"
      return (terminal.open({ support.program, script }, environment):finish())
    end
    local text, bytes = shown { TERM = "xterm-kitty" }, {}
    for piece in text:gmatch "\27_G[^;]*;([^\27]*)\27\\" do bytes[#bytes + 1] = piece end
    support.write(path "shown.base64", table.concat(bytes))
    support.run(("base64 -d %s >%s"):format(path "shown.base64", path "shown.png"))
    local expected, found = flow.image.load(path "h.png"):to "int32", flow.image.load(path "shown.png"):to "int32"
    assert.is_true((expected - found):abs():max():item() <= 2)      -- edges are mixed, and cut off to bytes
    assert.is_nil(shown({ TERM = "xterm" }):find("\27_G", 1, true))
    local piped = support.run(("env TERM=xterm-kitty FLOWLUA_PATH=%slua %s %s"):format(support.root, support.program, script))
    assert.is_nil(piped:find("\27_G", 1, true))
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
