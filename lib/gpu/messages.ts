/**
 * Lets the messages of a thread, such as a cancellation, and the events of its device be handled: one turn of its event
 * loop. A timer would take 4 ms.
 */
export function handleMessages(): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
