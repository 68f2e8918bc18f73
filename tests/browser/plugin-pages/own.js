/** A clients' page: shows what its route says, as text. */
export async function mount(element, console) {
  const { text } = await console.request('GET', '/pages/own');
  element.append(`${console.role}: ${text}`);
}
