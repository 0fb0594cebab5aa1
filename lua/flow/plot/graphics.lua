-- graphics.lua: drawings as pictures in a terminal that shows some, by the graphics protocol of kitty: a PNG file in base64, in escape
-- sequences of at most 4096 characters (https://sw.kovidgoyal.net/kitty/graphics-protocol/). The drawing becomes pixels (raster.lua), these
-- a PNG file in the folder for temporary files, and its bytes the text that plot/init.lua prints.

local host = require "flow.host"
local native = require "flow.ffi"
local log = require "flow.log"
local svg = require "flow.plot.svg"
local io = require "flow.io"
local in_temporary_folder = require("flow.signature").internal(io).in_temporary_folder

local C = native.C
local graphics = {}

local MOST_CHARACTERS = 4096
local PIXELS_A_COLUMN = 20      -- of a drawing: two for each of its units, as a character is about ten units wide

-- Whether what is printed goes to a terminal that says it has the protocol. The terminal is not asked, since its answer would come as input
-- of the program: the variables that such terminals set decide.
function graphics.offered()
  if log.sink or C.flow_log_stdio() == 0 or C.flow_terminal_columns() <= 0 then return false end
  local term, program = host.getenv("TERM") or "", host.getenv("TERM_PROGRAM") or ""
  return (host.getenv("KITTY_WINDOW_ID") or "") ~= "" or term:find "kitty" ~= nil or term:find "ghostty" ~= nil
    or program == "WezTerm" or program == "ghostty"
end

-- The characters that make the terminal show a PNG file, over this many of its columns: f=100 is PNG, a=T shows what was sent, c is the
-- number of columns, m=1 says that another part follows.
local function sequence(bytes, columns)
  local text, parts = svg.base64(bytes), {}
  for at = 1, #text, MOST_CHARACTERS do
    local control = at == 1 and ("f=100,a=T,c=%d,"):format(columns) or ""
    local more = at + MOST_CHARACTERS <= #text and 1 or 0
    parts[#parts + 1] = ("\27_G%sm=%d;%s\27\\"):format(control, more, text:sub(at, at + MOST_CHARACTERS - 1))
  end
  return table.concat(parts) .. "\n"
end

-- The bytes of a PNG file.
local function png(pixels)
  return in_temporary_folder(function(folder)
    local path = folder .. "/picture.png"
    require("flow.tensor.image").save(path, pixels)
    return io.read_file(path)
  end)
end

-- The same for a drawing (svg.lua).
function graphics.text(drawing)
  local pixels = require("flow.plot.raster").pixels(drawing)
  return sequence(png(pixels), math.min(math.ceil(pixels.shape[2] / PIXELS_A_COLUMN), C.flow_terminal_columns()))
end

return graphics
