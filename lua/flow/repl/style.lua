-- style.lua: colours on a terminal that shows them, none where NO_COLOR is set (no-color.org) or the terminal is called dumb.

local host = require "flow.host"

local style = { on = false }

local CODES = { error = "31", heading = "1", faint = "2" }

-- Colours from now on, if the output is a terminal that wants them.
function style.open(is_terminal)
  local wanted = host.getenv("NO_COLOR")
  style.on = is_terminal and (wanted == nil or wanted == "") and host.getenv("TERM") ~= "dumb"
end

-- The text in the colour of its kind, line by line.
function style.of(kind, text)
  if not style.on then return text end
  return (text:gsub("[^\n]+", function(line) return "\27[" .. CODES[kind] .. "m" .. line .. "\27[0m" end))
end

return style
