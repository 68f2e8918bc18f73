/** Hands a text to the browser as a file. */
export function saveText(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  // Not at once: some browsers read it after the click has returned.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
