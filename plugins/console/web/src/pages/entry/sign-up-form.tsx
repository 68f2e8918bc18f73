/** The form by which somebody signs up, freely or by an invitation. */
import { Anchor, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { signUp } from '../../api/auth.ts';
import { useInfo } from '../../api/session.ts';
import { useEntered } from './after-entry.ts';
import { EntryForm } from './form-part.tsx';
import { IdentityFields, useIdentity } from './identity-fields.tsx';

interface SignUpFormProps {
  readonly invite: string | undefined;
  /** The invited address. */
  readonly email: string | undefined;
  /** No session began: a mail has the link that confirms the address. */
  readonly onMail: (email: string) => void;
  /** A session began; by default the first page is opened. */
  readonly onEntered?: () => Promise<void>;
}

export function SignUpForm({ invite, email: invited, onMail, onEntered }: SignUpFormProps) {
  const { t } = useTranslation();
  const entered = useEntered();
  const form = useIdentity(invited);
  const terms = useInfo()?.brand.terms ?? null;
  const send = async () => {
    if (form.validate().hasErrors) return;
    const { name, email, password } = form.getValues();
    if (await signUp({ name: name.trim(), email: email.trim(), password, invite })) await (onEntered ?? entered)();
    else onMail(email);
  };
  return (
    <EntryForm button={t('entry.signUp.button')} onSend={send}>
      <IdentityFields form={form} />
      {terms !== null && (
        <Text fz="xs" c="dimmed">
          {t('entry.legal.accept')}{' '}
          <Anchor inherit href={terms} underline="always">
            {t('entry.legal.terms')}
          </Anchor>
        </Text>
      )}
    </EntryForm>
  );
}
