import path from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { binary } from '../../lib/cli/build';

/** The MCP server of npm `@wavespeed/mcp`, unmodified, as a child process over stdio. */
export interface McpServer {
  /** What a tool answers; the sentence of a tool that failed is thrown as an Error. */
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
  const client = new Client({ name: 'kinora-e2e', version: '1' });
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [binary('@wavespeed/mcp', path.join('dist', 'index.js'))],
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
