-- manual.lua: the manual page flowlua(1), in the form of man(7): the command line and a line for each public name.

local signature = require "flow.signature"

local manual = {}

local function escape(text)
  return (text:gsub("\\", "\\e"):gsub("%-", "\\-"):gsub("\n([.'])", "\n\\&%1"):gsub("^([.'])", "\\&%1"))
end

-- usage: of the program; items: of the reference.
function manual.page(usage, items)
  local lines = { '.TH FLOWLUA 1', ".SH NAME", "flowlua \\- neural networks from Lua", ".SH SYNOPSIS", ".nf", escape(usage), ".fi",
    ".SH FUNCTIONS", "What each takes; flowlua help NAME tells more, with an example." }
  for _, item in ipairs(items) do
    local record = item.f and signature.of(item.f)
    local text = record and signature.usage(record) or type(item.f) == "function" and "(...)" or ""
    lines[#lines + 1] = ".TP"
    lines[#lines + 1] = ".B " .. escape(item.name .. (text == "no arguments" and "()" or text))
    lines[#lines + 1] = escape(item.doc or "")
  end
  return table.concat(lines, "\n") .. "\n"
end

return manual
