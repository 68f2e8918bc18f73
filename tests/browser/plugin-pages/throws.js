/** Fails while it draws, after it has drawn something. */
export async function mount(element) {
  element.textContent = 'half a page';
  await Promise.resolve();
  throw new Error('no shelf is free');
}
