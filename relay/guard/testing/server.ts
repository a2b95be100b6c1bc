import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { testCertificate } from './certificate';

/** A server of a test on loopback, and how many connections reached it. */
export interface TestServer {
  readonly port: number;
  readonly origin: string;
  connections(): number;
  close(): Promise<void>;
}

/** An HTTP server, or with `tls` an HTTPS one, on a free port of 127.0.0.1. */
export function serve(onRequest: RequestListener, tls = false): Promise<TestServer> {
  const server = tls ? createTlsServer(testCertificate, onRequest) : createServer(onRequest);
  return start(server, tls ? 'https' : 'http');
}

/** A server that writes bytes of its own to every connection, for what no HTTP server would say. */
export function serveBytes(onConnection: (socket: Socket) => void): Promise<TestServer> {
  return start(createTcpServer(onConnection), 'http');
}

async function start(
  server: Server | ReturnType<typeof createTcpServer>,
  scheme: string,
): Promise<TestServer> {
  const open = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket: Socket) => {
    connections += 1;
    open.add(socket);
    socket.on('error', () => undefined).on('close', () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    origin: `${scheme}://127.0.0.1:${port}`,
    connections: () => connections,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
}
