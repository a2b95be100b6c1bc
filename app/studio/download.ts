/** Hands a file to the browser's downloads. */
export function downloadFile(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The download starts after this task; a minute is ample, and the URL holds no memory of its own.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
