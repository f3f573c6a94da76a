-- Has wrk send the requests of a file, one after the other, again and again.

local requests, last = {}, 0

function init(args)
  local file = assert(io.open(args[1], "rb"))
  for head in file:read("*a"):gmatch("(.-\r\n\r\n)") do
    requests[#requests + 1] = head
  end
  file:close()
end

function request()
  last = last % #requests + 1
  return requests[last]
end
