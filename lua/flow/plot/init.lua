-- init.lua: flow.plot: pictures of trainings, models, predictions and any numbers. Loaded when history:plot, model:plot or flow.plot
-- is first used.
--
-- Each function checks its arguments and the ending of the file, lets a module of the room make a drawing (svg.lua: shapes and texts) and
-- writes it: as SVG, or as the pixels of raster.lua by flow.image.save. Without a file it prints to the terminal: the drawing as a picture
-- where the terminal shows some (graphics.lua), else characters (terminal.lua, images.lua), and returns what it printed.
--
-- The room: pictures of models, trainings and predictions. May use: tensor, layers, model.

local errors = require "flow.errors"
local native = require "flow.ffi"
local log = require "flow.log"
local io = require "flow.io"

local raise = errors.raise
local signature = require "flow.signature"

local takes = signature.takes
local plot = signature.module "flow.plot"
local internal = signature.internal(plot)

-- The ending of a path, which says how the picture is written; raises, naming the known ones, if it is not one of them.
local function ending(what, file, known)
  if type(file) ~= "string" then raise("%s: the file is a path that ends in .%s, got %s", what, known[1], errors.describe(file)) end
  local found = file:match("%.([%w]+)$")
  for _, name in ipairs(known) do
    if found and found:lower() == name then return name end
  end
  raise("%s: %q: pictures are written as .%s files", what, file, table.concat(known, " or ."))
end
internal.ending = ending

local PICTURES = { "svg", "png" }
internal.PICTURES = PICTURES

-- Writes a drawing to a file of one of PICTURES' endings, in place of what was there. title: what it shows, in words; an SVG file has it
-- for readers that do not see it, a PNG file leaves it out. dpi: dots an inch of a PNG file, 96 by default; an SVG file has no dots.
local function write(what, file, drawing, title, dpi)
  if ending(what, file, PICTURES) == "svg" then return io.write(file, drawing:to_string(title)) end
  local image, pixels = require "flow.tensor.image", require("flow.plot.raster").pixels(drawing)
  if dpi then
    local function size(axis) return math.max(1, math.floor(pixels.shape[axis] * dpi / 96 + 0.5)) end
    pixels = image.resize(pixels, { size(1), size(2) }):clip(0, 255):round():to "uint8"
  end
  image.save(file, pixels)
end

internal.write = write

-- Prints through flow.log, so that a sink of the host gets it, and returns the text.
local function show(text)
  log.print("%s", text)
  return text
end

-- The characters that show a drawing as a picture, where the terminal shows some; nil elsewhere. draw() makes the drawing and is called
-- only when it is needed.
local function as_picture(draw)
  local graphics = require "flow.plot.graphics"
  return graphics.offered() and graphics.text((draw())) or nil
end

-- Panels of curves to a file, or, without one, to the terminal; then it returns what it printed. A title is over all panels; in a file it
-- is left out where the only panel has the same name, which stands over it already.
local function show_panels(what, panels, file, options)
  local curves = require "flow.plot.curves"
  local function draw()
    local how = curves.options(what, options)
    if #panels == 1 and how.title == panels[1].name and file then how.title = nil end
    return curves.draw(panels, how)
  end
  if file == nil then return show(as_picture(draw) or require("flow.plot.terminal").text(what, panels, options)) end
  write(what, file, draw())
end

local IN_FILES = { title = true, metrics = true, width = true, height = true, yscale = true }
local IN_TERMINALS = { metrics = true, width = true, height = true, unicode = true }

-- history:plot("history.svg", { title =, metrics =, width =, height =, yscale = "log" }) writes a picture; history:plot() shows the
-- curves in the terminal and returns what it printed.
takes("history, file?: path, { title?, metrics?, width?, height?, yscale? }", true)
function plot.history(history, file, options, extra)
  if type(file) == "table" and options == nil then file, options = nil, file end
  if extra ~= nil then raise("history:plot takes (file, options); %s is one argument too many", errors.describe(extra)) end
  if file ~= nil then ending("history:plot", file, PICTURES) end
  options = errors.check_options("history:plot", options, file and IN_FILES or IN_TERMINALS)
  return show_panels("history:plot", require("flow.plot.series").panels(history, options.metrics), file, options)
end

-- flow.plot.lines({ loss = losses, val_loss = others }, "curves.png", { title =, xlabel =, ylabel =, x =, yscale = "log" }).
takes("curves: data, file?: path, { x?, labels?: list, title?: text, xlabel?: text, ylabel?: text, yscale?: 'linear'|'log', "
  .. "width?: number, height?: number }")
function plot.lines(curves, file, options)
  local what = "flow.plot.lines"
  if file ~= nil then ending(what, file, PICTURES) end
  return show_panels(what, require("flow.plot.series").lines(what, curves, options), file, options)
end

-- flow.plot.histogram(tensor, "weights.svg", { bins = 30 }).
takes "values, file?: path, { bins: count = 10, title?: text, xlabel?: text, ylabel?: text, width?: number, height?: number }"
function plot.histogram(values, file, options)
  local what = "flow.plot.histogram"
  if file ~= nil then ending(what, file, PICTURES) end
  return show_panels(what, require("flow.plot.series").histogram(what, values, options.bins, options), file, options)
end

-- flow.plot.images(images, "first.png", { titles = labels, class_names =, columns = 3 }): at most max_images of a batch.
takes("images, file?: path, { titles?, class_names?: list, columns?: count, max_images: count = 25, title?: text }")
function plot.images(images, file, options)
  local what = "flow.plot.images"
  if file ~= nil then ending(what, file, PICTURES) end
  local room = require "flow.plot.images"
  local shown = room.read(what, images, options)
  if file ~= nil then return write(what, file, room.draw(shown, options.title)) end
  local columns = native.C.flow_terminal_columns()
  local picture = as_picture(function() return room.draw(shown, options.title) end)
  return show(picture or room.text(shown, columns > 0 and columns - 1 or 79, options.title))
end

-- model:plot("model.png", { show_shapes =, show_dtype =, show_layer_names =, show_layer_activations =, show_trainable =, rankdir = "TB",
-- expand_nested =, dpi = }): the graph of layers, as a picture or, ending in .dot, for Graphviz.
function plot.model(model, file, options)
  local kind = ending("model:plot", file, { "svg", "png", "dot" })
  if not require("flow.object").is(model, require("flow.model").Model) then
    errors.raise("model:plot takes a model, got %s", errors.describe(model))
  end
  local room = require "flow.plot.model"
  if kind == "dot" then return io.write(file, room.dot(model, options)) end
  local drawing, title = room.draw(model, options)
  write("model:plot", file, drawing, title, options and options.dpi)
end

-- flow.plot.filters(layer, "filters.png", { columns =, max_images = 64 }): what a convolution's filters look like: each as a picture, of 3
-- channels in colour, of others the mean of its channels. Grey is 0.
takes("layer, file?: path, { columns?: count, max_images: count = 64, title?: text }")
function plot.filters(layer, file, options)
  local room = require "flow.plot.features"
  return plot.images(room.filters(layer), file, options)
end

-- flow.plot.feature_maps(model, image, "maps.png", { layer = "conv2d", columns =, max_images = 64 }): what a layer of a model gives for a
-- picture {height, width, channels}, a picture for each channel, from its least value to its greatest. layer: a layer or its name; by
-- default the first one that gives pictures of another number of channels.
takes("model, image: data, file?: path, { layer?: any, columns?: count, max_images: count = 64, title?: text }")
function plot.feature_maps(model, image, file, options)
  local room = require "flow.plot.features"
  local maps, name = room.maps(model, image, options.layer)
  return plot.images(maps, file, { columns = options.columns, max_images = options.max_images, title = options.title or name })
end

-- flow.plot.confusion_matrix(y_true, y_pred, { class_names =, file =, normalize = }) -> the matrix.
function plot.confusion_matrix(y_true, y_pred, options)
  return require("flow.plot.confusion").matrix(y_true, y_pred, options)
end

return plot
