-- closed.lua: a table of names that users read, title: from now on another name is an error.
local errors = require "flow.errors"

return function(title, names)
  return setmetatable(names, { __index = function(_, name)
    errors.raise("%s has no %q%s", title, tostring(name), errors.instead(title, names, tostring(name)))
  end })
end
