/** The person: name, password, second factor, passkeys, sessions, language. */
import { Badge, Button, Grid, Group, Select, Stack, Text, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import i18next from 'i18next';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { sendVerification } from '../../api/auth.ts';
import { send } from '../../api/client.ts';
import { has, meQuery, queries, useInfo, useMe, usePerson } from '../../api/session.ts';
import type { Me } from '../../api/types.ts';
import { Page, Panel } from '../../parts/page.tsx';
import { useErrorText } from '../../parts/states.tsx';
import { Steady } from '../../parts/steady.tsx';
import profile from '../../texts/en/profile.ts';
import { languageName, languages, speak } from '../../texts/index.ts';
import { Notices } from './profile-notices.tsx';
import { Passkeys } from './profile-passkeys.tsx';
import { NoPassword, Password } from './profile-password.tsx';
import { SecondFactor } from './profile-second.tsx';
import { Sessions } from './profile-sessions.tsx';

// The other languages have these texts from the start.
i18next.addResourceBundle('en', 'translation', { client: profile }, true);

export default function Profile() {
  const { t } = useTranslation();
  const { hasPassword, providerOnly } = usePerson();
  const me = useMe();
  return (
    <Page title={t('shell.profile')}>
      <Grid gap="md">
        <Grid.Col span={{ base: 12, md: 6 }}>
          <Stack gap="md">
            <You />
            {hasPassword ? <Password /> : <NoPassword />}
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 6 }}>
          <Stack gap="md">
            {hasPassword && <SecondFactor />}
            {!providerOnly && <Passkeys />}
          </Stack>
        </Grid.Col>
        {me.account?.retention === 'none' && (
          <Grid.Col span={12}>
            <Panel title={t('client.profile.kept')}>
              <Text fz="sm">{t('client.profile.keptNothing')}</Text>
            </Panel>
          </Grid.Col>
        )}
        {me.account !== null && has(me, 'notices') && (
          <Grid.Col span={12}>
            <Notices />
          </Grid.Col>
        )}
        <Grid.Col span={12}>
          <Steady>
            <Sessions />
          </Steady>
        </Grid.Col>
      </Grid>
    </Page>
  );
}

function You() {
  const { t, i18n } = useTranslation();
  const person = usePerson();
  const textOf = useErrorText();
  const [name, setName] = useState(person.name);
  const [problem, setProblem] = useState<string>();
  const save = async () => {
    setProblem(undefined);
    try {
      queries.setQueryData(meQuery.queryKey, await send<Me>('PATCH', '/me', { name: name.trim() }));
      notifications.show({ message: t('client.profile.saved'), color: 'teal' });
    } catch (error) {
      setProblem(textOf(error));
    }
  };
  return (
    <Panel title={t('client.profile.person')}>
      <Stack gap="sm">
        <Group gap="xs" align="flex-end">
          <TextInput
            className="grow"
            label={t('shell.word.name')}
            autoComplete="name"
            maxLength={100}
            value={name}
            error={problem}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
          />
          <Button variant="default" disabled={name.trim() === '' || name === person.name} onClick={() => void save()}>
            {t('shell.save')}
          </Button>
        </Group>
        <Mail />
        <Select
          label={t('shell.language')}
          data={languages.map((value) => ({ value, label: languageName(value) }))}
          value={i18n.language}
          allowDeselect={false}
          onChange={(language) => void speak(language ?? 'en')}
        />
      </Stack>
    </Panel>
  );
}

function Mail() {
  const { t } = useTranslation();
  const person = usePerson();
  const info = useInfo();
  const textOf = useErrorText();
  const [sent, setSent] = useState(false);
  const [problem, setProblem] = useState<string>();
  const sendLink = async () => {
    setProblem(undefined);
    try {
      await sendVerification(person.email);
      setSent(true);
    } catch (error) {
      setProblem(textOf(error));
    }
  };
  return (
    <div>
      <Text fz="sm" fw={500}>
        {t('entry.email')}
      </Text>
      <Group gap="xs">
        <Text fz="sm" className="breaks">
          {person.email}
        </Text>
        {!person.emailVerified && (
          <>
            <Badge size="sm" color="yellow" variant="light" radius="sm" tt="none">
              {t('client.profile.unverified')}
            </Badge>
            {info?.mail === true && (
              <Button size="compact-xs" variant="subtle" disabled={sent} onClick={() => void sendLink()}>
                {sent ? t('client.profile.linkSent') : t('client.profile.sendLink')}
              </Button>
            )}
          </>
        )}
      </Group>
      {!person.emailVerified && info?.mail === false && (
        <Text fz="xs" c="dimmed">
          {t('client.profile.byOperator')}
        </Text>
      )}
      {problem !== undefined && (
        <Text fz="xs" c="red" role="alert">
          {problem}
        </Text>
      )}
    </div>
  );
}
