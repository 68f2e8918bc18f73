/** Opens one request by its id, such as a client quotes it. */
import { ActionIcon, TextInput } from '@mantine/core';
import { IconArrowRight } from '@tabler/icons-react';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';

export function OpenById() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [id, setId] = useState('');
  const open = (event: FormEvent) => {
    event.preventDefault();
    if (id.trim() !== '') void navigate({ to: `/admin/requests/${encodeURIComponent(id.trim())}` });
  };
  return (
    <form onSubmit={open}>
      <TextInput
        size="xs"
        w={190}
        aria-label={t('client.usage.requestId')}
        placeholder={t('client.usage.requestId')}
        value={id}
        onChange={({ currentTarget }) => setId(currentTarget.value)}
        rightSection={
          <ActionIcon type="submit" size="sm" variant="subtle" aria-label={t('shell.open')}>
            <IconArrowRight size={14} />
          </ActionIcon>
        }
      />
    </form>
  );
}
