-- shell.lua: commands of the system: quoting texts for a shell, finding programs, reading their output.

local host = require "flow.host"

local shell = {}

-- A text as one word of a command: as it is, or in single quotes.
function shell.quote(text)
  return text:find("^[%w%-_./=:,+@]+$") and text or "'" .. text:gsub("'", "'\\''") .. "'"
end

-- The arguments of a command as one line of a shell.
function shell.line(arguments)
  local parts = {}
  for i, text in ipairs(arguments) do parts[i] = shell.quote(text) end
  return table.concat(parts, " ")
end

-- The path of a program that PATH leads to; nil: there is none.
function shell.find(name)
  for folder in (host.getenv("PATH") or ""):gmatch("[^:]+") do
    local path = folder .. "/" .. name
    if host.readable(path) then return path end
  end
end

-- Runs a line of a shell; returns what it printed to its standard output, and its exit code. It reads this process' standard input.
function shell.read(line)
  local pipe = assert(host.io.popen(line .. "; echo \"[$?]\"", "r"))
  local text = pipe:read("*a")
  pipe:close()
  local output, code = text:match("^(.*)%[(%d+)%]\n$")
  return output or text, tonumber(code) or 1
end

return shell
