/**
 * A note in this browser that a session may stand. Scripts cannot see the session's cookie, and asking
 * the server on every visit would leave a refused request in the console of whoever never signed in.
 */
const name = 'kinora-session-until';
const sessionMs = 7 * 24 * 3_600_000;

export function noteSignedIn(): void {
  write(String(Date.now() + sessionMs));
}

export function noteSignedOut(): void {
  write(null);
}

export function mayBeSignedIn(): boolean {
  try {
    return Number(localStorage.getItem(name) ?? 0) > Date.now();
  } catch {
    return false;
  }
}

function write(value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
  } catch {
    // Storage is shut off: the next visit asks for a new sign-in.
  }
}
