-- make_flowers.lua: draws photographs of flowers that do not exist: five kinds in five folders, JPEG and PNG, of all sizes,
-- poses and in several colours. A data set for flowers.lua that needs no download: kinds share colours, so that shape counts.
--
--   flowlua lua/examples/make_flowers.lua --path flower_photos --images-per-class 400
local flow = require "flow"

local pi, random = math.pi, math.random
local kinds = {}

local function between(low, high) return low + (high - low) * random() end
local function pick(list) return list[random(#list)] end

---- drawing: a picture is { height, width, x, y, pixels }, values 0 to 255 ----------------------------------------------------

local white, yellow, pink, red, orange = { 240, 238, 228 }, { 240, 205, 45 }, { 232, 130, 170 }, { 200, 30, 45 }, { 235, 130, 35 }
local purple, brown, green, dark_green = { 140, 80, 170 }, { 75, 45, 25 }, { 75, 135, 55 }, { 40, 85, 40 }

-- The colour, somewhat off.
local function vary(colour, by)
  local varied = {}
  for c = 1, 3 do varied[c] = colour[c] + between(-by, by) end
  return varied
end

-- Clouds of a few colours, out of focus.
local function background(height, width)
  local base, rough = vary(pick { green, dark_green, brown, { 120, 130, 140 }, { 90, 110, 60 } }, 25), random(3, 7)
  local clouds = flow.random.normal({ rough, rough, 3 }, { stddev = 28, seed = random(2 ^ 30) })
  local shared = flow.random.normal({ rough, rough, 1 }, { stddev = 25, seed = random(2 ^ 30) })
  local pixels = flow.image.resize(clouds + shared, { height, width }, { interpolation = "bicubic" }) + flow.tensor { { base } }
  return { height = height, width = width, pixels = pixels, size = math.min(height, width),
           x = flow.arange(width):to("float32"):reshape { 1, width }, y = flow.arange(height):to("float32"):reshape { height, 1 } }
end

-- Paints ellipses, a list of { x, y, length, width, angle }, in one colour, darker at their ends by `shade`.
local function paint(picture, ellipses, colour, shade, softness)
  local nearest
  for _, e in ipairs(ellipses) do
    local cos, sin = math.cos(e[5]), math.sin(e[5])
    local dx, dy = picture.x - e[1], picture.y - e[2]
    local along, across = (dx * cos + dy * sin) / e[3], (dy * cos - dx * sin) / e[4]
    local distance = along * along + across * across
    nearest = nearest and flow.minimum(nearest, distance) or distance
  end
  local shape = { picture.height, picture.width, 1 }
  local mask = flow.sigmoid((1 - nearest) * (softness or 12)):reshape(shape)
  local light = (1 - flow.minimum(nearest, 1) * (shade or 0.2)):reshape(shape)
  picture.pixels = picture.pixels + mask * (light * flow.tensor { { colour } } - picture.pixels)
end

-- A ring of n petals around (x, y): from `inner` to `outer`, `width` wide.
local function ring(x, y, n, inner, outer, width, turn, jitter)
  local petals = {}
  for i = 1, n do
    local angle = turn + 2 * pi * i / n + between(-jitter, jitter)
    local outside = outer * between(0.9, 1.1)
    local middle, length = (inner + outside) / 2, (outside - inner) / 2
    petals[i] = { x + middle * math.cos(angle), y + middle * math.sin(angle), length, width, angle }
  end
  return petals
end

local function stem(picture, x, y, radius)
  local lean = between(-0.2, 0.2)
  paint(picture, { { x + lean * radius, y + 1.6 * radius, 1.7 * radius, radius * 0.07, pi / 2 - lean } }, vary(green, 20), 0.3)
end

---- the kinds: each paints itself at (x, y) with a radius ------------------------------------------------------------------------

function kinds.daisy(picture, x, y, radius)
  local colour, turn = vary(pick { white, white, pink }, 15), between(0, pi)
  paint(picture, ring(x, y, random(11, 16), radius * 0.15, radius, radius * between(0.1, 0.14), turn, 0.06), colour, 0.3)
  local heart = radius * between(0.2, 0.27)
  paint(picture, { { x, y, heart, heart, 0 } }, vary(pick { yellow, orange }, 15), 0.4)
end

function kinds.sunflower(picture, x, y, radius)
  local colour, turn, n = vary(pick { yellow, yellow, orange }, 15), between(0, pi), random(15, 21)
  paint(picture, ring(x, y, n, radius * 0.3, radius, radius * 0.11, turn, 0.05), vary(colour, 12), 0.4)
  paint(picture, ring(x, y, n, radius * 0.3, radius * 0.85, radius * 0.1, turn + pi / n, 0.05), colour, 0.3)
  local heart = radius * between(0.42, 0.52)
  paint(picture, { { x, y, heart, heart, 0 } }, vary(pick { brown, brown, dark_green }, 15), 0.5)
end

function kinds.dandelion(picture, x, y, radius)
  local colour = vary(pick { yellow, yellow, white }, 15)
  stem(picture, x, y, radius)
  for layer = 1, 3 do
    local outer = radius * (1.1 - 0.25 * layer)
    paint(picture, ring(x, y, 26, 0, outer, radius * 0.035, between(0, pi), 0.1), vary(colour, 18), 0.5, 6)
  end
end

function kinds.rose(picture, x, y, radius)
  local colour, turn = pick { red, red, pink }, between(0, pi)
  local size = radius * 0.9
  for layer = 0, 4 do
    local shade = 1 - 0.12 * (layer % 2) - 0.05 * layer
    local tone = vary({ colour[1] * shade, colour[2] * shade, colour[3] * shade }, 8)
    local angle = turn + layer * 1.3
    local off = size * 0.22
    paint(picture, { { x + off * math.cos(angle), y + off * math.sin(angle), size * 0.85, size * 0.7, angle + pi / 2 },
                     { x - off * math.cos(angle), y - off * math.sin(angle), size * 0.85, size * 0.7, angle + pi / 2 } }, tone, 0.45)
    size = size * 0.7
  end
end

function kinds.tulip(picture, x, y, radius)
  local colour, lean = vary(pick { purple, purple, red, orange }, 15), between(-0.25, 0.25)
  stem(picture, x, y, radius)
  local up = -pi / 2 + lean
  local function petal(turn, width, light)
    local tone = { colour[1] * light, colour[2] * light, colour[3] * light }
    local angle = up + turn
    paint(picture, { { x + 0.15 * radius * math.cos(angle), y + 0.15 * radius * math.sin(angle), radius * 0.8, radius * width, angle } },
      tone, 0.35)
  end
  petal(-0.35, 0.3, 0.85)
  petal(0.35, 0.3, 0.85)
  petal(0, 0.34, 1)
end

---- whole pictures ------------------------------------------------------------------------------------------------------------------

local names = { "daisy", "dandelion", "rose", "sunflower", "tulip" }

local function draw(kind)
  local picture = background(random(110, 230), random(110, 250))
  for _ = 1, random(0, 3) do          -- leaves and blurred neighbours
    local size = picture.size * between(0.05, 0.3)
    paint(picture, { { between(0, picture.width), between(0, picture.height), size, size * between(0.3, 1), between(0, pi) } },
      vary(pick { green, dark_green, white, yellow, pink, red, purple }, 30), 0.3, between(1, 4))
  end
  local radius = picture.size * between(0.28, 0.48)
  local x, y = picture.width * between(0.35, 0.65), picture.height * between(0.35, 0.65)
  kinds[kind](picture, x, y, radius)
  local shape = { picture.height, picture.width, 3 }
  local light, noise = between(0.75, 1.15), flow.random.normal(shape, { stddev = between(2, 8), seed = random(2 ^ 30) })
  return picture.pixels * light + noise
end

local function quoted(path) return "'" .. path:gsub("'", "'\\''") .. "'" end

-- Draws `count` pictures of each kind into folders below path.
local function make(path, count, seed)
  math.randomseed(seed)
  for _, kind in ipairs(names) do
    local folder = path .. "/" .. kind
    if os.execute("mkdir -p " .. quoted(folder)) ~= 0 then error("cannot make the folder " .. folder, 0) end
    for i = 1, count do
      local name = ("%s/%s_%04d"):format(folder, kind, i)
      local picture = draw(kind)
      if i % 4 == 0 then flow.image.save(name .. ".png", picture)
      else flow.image.save(name .. ".jpg", picture, { quality = random(75, 95) }) end
    end
  end
end

if not arg or not arg[0] or not arg[0]:match("make_flowers%.lua$") then return make end     -- another script asked for it

local options = flow.args { path = "flower_photos", images_per_class = 400, seed = 1 }
make(options.path, options.images_per_class, options.seed)
print(("%d pictures of %d kinds of flowers in %s"):format(#names * options.images_per_class, #names, options.path))
