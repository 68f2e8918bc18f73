/** Name, mail address and password of a new person, and their checks. */
import { PasswordInput, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useTranslation } from 'react-i18next';
import { checks } from './form-part.tsx';

export interface Identity {
  readonly name: string;
  readonly email: string;
  readonly password: string;
}

export function useIdentity(email = '') {
  return useForm<Identity>({
    initialValues: { name: '', email, password: '' },
    validate: { name: checks.name, email: checks.email, password: checks.password },
    validateInputOnBlur: true,
  });
}

export function IdentityFields({ form }: { readonly form: ReturnType<typeof useIdentity> }) {
  const { t } = useTranslation();
  return (
    <>
      <TextInput label={t('shell.word.name')} autoComplete="name" {...form.getInputProps('name')} />
      <TextInput label={t('entry.email')} type="email" autoComplete="username" {...form.getInputProps('email')} />
      <NewPassword {...form.getInputProps('password')} label={t('entry.password')} />
    </>
  );
}

type NewPasswordProps = ReturnType<ReturnType<typeof useIdentity>['getInputProps']> & { readonly label: string };

export function NewPassword(props: NewPasswordProps) {
  const { t } = useTranslation();
  return (
    <PasswordInput
      autoComplete="new-password"
      description={
        <Text span fz="xs">
          {t('entry.passwordHint')}
        </Text>
      }
      inputWrapperOrder={['label', 'input', 'description', 'error']}
      {...props}
    />
  );
}
