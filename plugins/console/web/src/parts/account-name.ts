/** What operators call an account. One that was made for a person has a name of address and id until it gets another: it is called by the person. */
interface Named {
  readonly name: string;
  readonly person: { readonly name: string; readonly email: string } | null;
}

const isMade = (name: string) => / [0-9a-f]{13}$/.test(name);

export const accountName = ({ name, person }: Named): string =>
  person !== null && isMade(name) ? person.name || person.email : name;
