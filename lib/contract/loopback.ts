/** Whether an address is a loopback address: only this machine reaches it. */
export function isLoopback(address: string): boolean {
  const { hostname } = new URL(address);
  return /^(localhost|.*\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}
