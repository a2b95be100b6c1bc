import { importTestPackage, testPackageFile } from '../../lib/cli/dev/test-packages';

/** The parts of npm `@modelcontextprotocol/sdk` that are used. */
interface McpClient {
  connect(transport: object): Promise<void>;
  callTool(
    call: { name: string; arguments: Record<string, unknown> },
    schema: undefined,
    options: { timeout: number },
  ): Promise<{ readonly content: unknown; readonly isError?: boolean }>;
  close(): Promise<void>;
}
interface ClientModule {
  readonly Client: new (self: { name: string; version: string }) => McpClient;
}
interface StdioModule {
  readonly StdioClientTransport: new (program: {
    command: string;
    args: readonly string[];
    cwd: string;
    stderr: 'ignore';
    env: Readonly<Record<string, string>>;
  }) => object;
}

/** The MCP server of npm `@wavespeed/mcp`, unmodified, as a child process over stdio. */
export interface McpServer {
  /** The answer of a tool; the sentence of a tool that failed is thrown as an Error. */
  call(name: string, input?: Record<string, unknown>): Promise<Record<string, unknown>>;
  close(): Promise<void>;
}

/**
 * @param home its home folder: it keeps a catalogue and addresses of uploads there
 */
export async function startMcp(settings: {
  origin: string;
  apiKey: string;
  home: string;
}): Promise<McpServer> {
  const sdk = '@modelcontextprotocol/sdk/dist/esm/client';
  const { Client } = await importTestPackage<ClientModule>(`${sdk}/index.js`);
  const { StdioClientTransport } = await importTestPackage<StdioModule>(`${sdk}/stdio.js`);
  const client = new Client({ name: 'kinora-e2e', version: '1' });
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [await testPackageFile('@wavespeed/mcp/dist/index.js')],
    cwd: settings.home,
    stderr: 'ignore',
    env: {
      PATH: process.env.PATH ?? '',
      HOME: settings.home,
      WAVESPEED_BASE_URL: settings.origin,
      WAVESPEED_API_KEY: settings.apiKey,
    },
  });
  await client.connect(transport);
  return {
    async call(name, input = {}) {
      const answer = await client.callTool({ name, arguments: input }, undefined, {
        timeout: 110_000,
      });
      const [content] = answer.content as { type: string; text: string }[];
      const text = content?.text ?? '';
      if (answer.isError) throw new Error(text);
      return JSON.parse(text) as Record<string, unknown>;
    },
    close: () => client.close(),
  };
}
